//! The content of the events that we send.

use hermetic_types::ChatPlace;
use serde_json::{Value, json};

use crate::html::to_html;

/// An event may have 65,536 bytes in all; what the homeserver adds has its share.
const CONTENT_BYTES: usize = 62_000;
/// What apps show that do not understand edits.
const FALLBACK_CHARACTERS: usize = 200;

/// A message in words, with its format where that fits.
pub(crate) fn text(text: &str) -> Value {
    let plain = printable(text);
    let mut content = json!({ "msgtype": "m.text", "body": plain });
    if let Some(html) = to_html(&plain) {
        content["format"] = json!("org.matrix.custom.html");
        content["formatted_body"] = json!(html);
        if content.to_string().len() > CONTENT_BYTES {
            content = json!({ "msgtype": "m.text", "body": plain });
        }
    }
    // Nobody is called by a name that happens to stand in a text.
    content["m.mentions"] = json!({});
    content
}

/// Puts a message where it belongs: into a thread, below another message.
pub(crate) fn relate(
    content: &mut Value,
    place: &ChatPlace,
    reply_to: Option<&str>,
    author: Option<&str>,
) {
    let root = place.thread.as_ref().map(|thread| thread.as_str());
    // Under the message that a thread begins with, everything is a reply to it.
    let reply_to = reply_to.filter(|reply_to| root != Some(*reply_to));
    if let Some(root) = root {
        content["m.relates_to"] = json!({
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": reply_to.is_none(),
            "m.in_reply_to": { "event_id": reply_to.unwrap_or(root) },
        });
    } else if let Some(reply_to) = reply_to {
        content["m.relates_to"] = json!({ "m.in_reply_to": { "event_id": reply_to } });
    }
    if let Some(author) = author {
        content["m.mentions"] = json!({ "user_ids": [author] });
    }
}

/// The change of an earlier message.
pub(crate) fn edit(event: &str, new: &Value) -> Value {
    let body = new["body"].as_str().unwrap_or_default();
    let short: String = body.chars().take(FALLBACK_CHARACTERS).collect();
    json!({
        "msgtype": "m.text",
        "body": format!("* {short}"),
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": { "rel_type": "m.replace", "event_id": event },
    })
}

/// Without signs that no app shows and that take six bytes each on the way.
fn printable(text: &str) -> String {
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use hermetic_types::{ChatId, ChatKind, ThreadId};

    use super::*;
    use crate::LONGEST_MESSAGE;

    #[test]
    fn the_worst_text_of_the_longest_length_fits_an_event_and_its_edit() {
        for worst in ["\"", "\n", "&", "\u{1}", "*a* ", "\\", "😀"] {
            let longest = worst.repeat(LONGEST_MESSAGE / worst.len());
            let content = text(&longest);
            assert!(content.to_string().len() <= CONTENT_BYTES, "{worst:?}");
            let edited = edit("$1", &content).to_string();
            assert!(edited.len() <= CONTENT_BYTES + 2_000, "{worst:?}");
        }
    }

    #[test]
    fn a_thread_is_kept_to_and_calls_nobody_by_itself() {
        let place = ChatPlace {
            chat: ChatId::new("!a").unwrap(),
            kind: ChatKind::Thread,
            thread: Some(ThreadId::new("$root").unwrap()),
        };
        let mut content = text("hello @room");
        relate(&mut content, &place, Some("$root"), None);
        assert_eq!(content["m.mentions"], json!({}));
        assert_eq!(content["m.relates_to"]["is_falling_back"], json!(true));
        relate(&mut content, &place, Some("$other"), Some("@alice:b"));
        assert_eq!(
            content["m.relates_to"]["m.in_reply_to"]["event_id"],
            "$other"
        );
        assert_eq!(content["m.mentions"]["user_ids"], json!(["@alice:b"]));
    }
}
