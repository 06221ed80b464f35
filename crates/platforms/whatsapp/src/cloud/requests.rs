//! What we ask of the Graph API, field by field as it names them.

use hermetic_chat::{ReplyButton, SendFailure};
use hermetic_types::{ChatKind, ChatPlace, MessageId};
use serde_json::{Value, json};

use super::MessageTemplate;
use crate::person::{BusinessScopedId, PhoneNumber};

/// Reply buttons under one message.
const MOST_BUTTONS: usize = 3;
const BUTTON_TITLE: usize = 20;
/// Rows of a list, which takes the place of more buttons.
pub(super) const MOST_ROWS: usize = 10;
const ROW_TITLE: usize = 24;
/// What comes back with a chosen row; a button takes more.
pub(super) const ROW_ID_BYTES: usize = 200;

/// Whom a message goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CloudRecipient {
    Id(String),
    Number(String),
    Group(String),
}

impl CloudRecipient {
    pub(super) fn of(place: &ChatPlace) -> Result<Self, SendFailure> {
        let chat = place.chat.as_str();
        if place.kind != ChatKind::Dm {
            return Ok(Self::Group(chat.to_owned()));
        }
        if BusinessScopedId::read(chat).is_some() {
            return Ok(Self::Id(chat.to_owned()));
        }
        if PhoneNumber::read(chat).is_some() {
            return Ok(Self::Number(chat.to_owned()));
        }
        Err(SendFailure::Refused {
            description: format!("{chat:?} is no chat of WhatsApp's"),
        })
    }
}

/// A message of this kind. `mark` comes back with its statuses.
pub(super) fn message(
    recipient: &CloudRecipient,
    (kind, content): (&str, Value),
    reply_to: Option<&MessageId>,
    mark: Option<&str>,
) -> Value {
    let mut body = json!({ "messaging_product": "whatsapp", "type": kind });
    body[kind] = content;
    match recipient {
        CloudRecipient::Id(id) => {
            body["recipient_type"] = json!("individual");
            body["recipient"] = json!(id);
        }
        CloudRecipient::Number(number) => {
            body["recipient_type"] = json!("individual");
            body["to"] = json!(number);
        }
        CloudRecipient::Group(group) => {
            body["recipient_type"] = json!("group");
            body["to"] = json!(group);
        }
    }
    // A message that is not WhatsApp's, such as one that a process woke us with, cannot be quoted.
    if let Some(quoted) = reply_to.filter(|id| id.as_str().starts_with("wamid.")) {
        body["context"] = json!({ "message_id": quoted });
    }
    if let Some(mark) = mark {
        body["biz_opaque_callback_data"] = json!(mark);
    }
    body
}

/// Without a preview: whoever fetches one tells its server that the link was shown.
pub(super) fn text(text: &str) -> (&'static str, Value) {
    ("text", json!({ "body": text, "preview_url": false }))
}

/// A text with something to choose; nothing where WhatsApp has no form for these choices, which then
/// have to be typed.
pub(super) fn choices(text: &str, buttons: &[Vec<ReplyButton>]) -> Option<(&'static str, Value)> {
    let all: Vec<_> = buttons.iter().flatten().collect();
    let interactive = if all.is_empty() || all.len() > MOST_ROWS {
        return None;
    } else if all.len() <= MOST_BUTTONS {
        let titles = titles(&all, BUTTON_TITLE)?;
        let button = |(button, title): (&&ReplyButton, String)| json!({ "type": "reply", "reply": { "id": button.data(), "title": title } });
        let buttons: Vec<_> = all.iter().zip(titles).map(button).collect();
        json!({ "type": "button", "body": { "text": text }, "action": { "buttons": buttons } })
    } else {
        let titles = titles(&all, ROW_TITLE)?;
        let row = |(button, title): (&&ReplyButton, String)| json!({ "id": button.data(), "title": title });
        let rows: Vec<_> = all.iter().zip(titles).map(row).collect();
        json!({
            "type": "list",
            "body": { "text": text },
            "action": { "button": "Answer", "sections": [{ "title": "Answers", "rows": rows }] },
        })
    };
    Some(("interactive", interactive))
}

/// What stands on the buttons, shortened. WhatsApp wants them all different.
fn titles(buttons: &[&ReplyButton], longest: usize) -> Option<Vec<String>> {
    let mut titles: Vec<String> = Vec::new();
    for button in buttons {
        let title = shortened(button.label(), longest);
        if titles.contains(&title) {
            return None;
        }
        titles.push(title);
    }
    Some(titles)
}

fn shortened(label: &str, longest: usize) -> String {
    let mut left = longest;
    let fits = |c: &char| {
        let fits = c.len_utf16() <= left;
        left = left.saturating_sub(c.len_utf16());
        fits
    };
    label.trim().chars().take_while(fits).collect()
}

pub(super) fn template(template: &MessageTemplate) -> (&'static str, Value) {
    let content = json!({ "name": template.name, "language": { "code": template.language } });
    ("template", content)
}

/// Marks a message as read, and all before it.
pub(super) fn read(message: &MessageId) -> Value {
    json!({ "messaging_product": "whatsapp", "status": "read", "message_id": message })
}

/// The same, and shows that an answer is being written.
pub(super) fn typing(message: &MessageId) -> Value {
    let mut body = read(message);
    body["typing_indicator"] = json!({ "type": "text" });
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buttons(labels: &[&str]) -> Vec<Vec<ReplyButton>> {
        let button = |label: &&str| vec![ReplyButton::new(*label, format!("q:{label}")).unwrap()];
        labels.iter().map(button).collect()
    }

    #[test]
    fn three_are_buttons_and_more_are_a_list() {
        let (_, three) = choices(
            "May I?",
            &buttons(&["Yes", "No", "Later, when I am at home"]),
        )
        .unwrap();
        assert_eq!(three["type"], "button");
        let last = &three["action"]["buttons"][2]["reply"];
        assert_eq!(last["title"], "Later, when I am at ");
        assert_eq!(last["id"], "q:Later, when I am at home");
        let (_, five) = choices("May I?", &buttons(&["1", "2", "3", "4", "5"])).unwrap();
        assert_eq!(five["type"], "list");
        assert_eq!(five["action"]["sections"][0]["rows"][4]["id"], "q:5");
    }

    #[test]
    fn what_whatsapp_cannot_show_is_typed() {
        let many: Vec<_> = (0..11).map(|n| n.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(choices("May I?", &buttons(&many)), None);
        let alike = ["the same beginning, one", "the same beginning, two"];
        assert_eq!(choices("May I?", &buttons(&alike)), None);
        assert_eq!(choices("Hello", &[]), None);
    }
}
