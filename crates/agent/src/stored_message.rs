//! Messages as a program keeps them.

use hermetic_redact::Redactor;

use crate::{Message, MessagePart, ModelText};

/// A message that was read from where it was kept. Nothing proves any more that it was redacted.
pub type StoredMessage = Message<String>;

impl StoredMessage {
    /// The message again, without what is known as a secret today.
    ///
    /// Its texts were redacted before they were kept, so nothing changes unless there are new secrets or
    /// new rules. What the model wrote stays as it wrote it.
    pub fn redacted(self, redactor: &Redactor) -> Message {
        let full = |text: String| ModelText::from(redactor.redact(text));
        let spoken = |text: String| ModelText::spoken(&text, redactor);
        match self {
            Self::System { text } => Message::System { text: full(text) },
            Self::User { parts } => Message::User {
                parts: each(parts, spoken),
            },
            Self::Assistant { parts } => Message::Assistant { parts },
            Self::Tool {
                call_id,
                failed,
                parts,
            } => Message::Tool {
                call_id,
                failed,
                parts: each(parts, full),
            },
        }
    }
}

fn each(parts: Vec<MessagePart<String>>, redact: impl Fn(String) -> ModelText) -> Vec<MessagePart> {
    let redacted = parts.into_iter().map(|part| match part {
        MessagePart::Text { text } => MessagePart::Text { text: redact(text) },
        MessagePart::Image(image) => MessagePart::Image(image),
        MessagePart::File(file) => MessagePart::File(file),
    });
    redacted.collect()
}

#[cfg(test)]
mod tests {
    use hermetic_redact::RedactorSettings;
    use hermetic_types::Secret;
    use serde_json::json;

    use super::*;
    use crate::{AssistantPart, CallId, MediaPart, OpaquePart, ToolCall};

    /// One of every role, with a part of every kind.
    fn conversation() -> Vec<Message> {
        let image = MediaPart::inline("image/png", b"png").unwrap();
        let call = ToolCall {
            id: CallId::new("c1"),
            name: "look".to_owned(),
            arguments: r#"{"at":"sky"}"#.to_owned(),
        };
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"});
        let mut plan = MediaPart::inline("application/pdf", b"pdf").unwrap();
        plan.name = Some("plan.pdf".to_owned());
        vec![
            Message::system("be good"),
            Message::User {
                parts: vec![
                    MessagePart::text("what is\non this?"),
                    MessagePart::Image(image.clone()),
                    MessagePart::File(plan),
                ],
            },
            Message::Assistant {
                parts: vec![
                    AssistantPart::Opaque(OpaquePart::new("anthropic", thought)),
                    AssistantPart::text("I look."),
                    AssistantPart::ToolCall(call),
                    AssistantPart::Image(image.clone()),
                ],
            },
            Message::Tool {
                call_id: CallId::new("c1"),
                failed: true,
                parts: vec![MessagePart::text("it is dark"), MessagePart::Image(image)],
            },
        ]
    }

    fn kept_and_read(messages: &[Message], redactor: &Redactor) -> Vec<Message> {
        let kept = messages.iter().map(|message| {
            let line = serde_json::to_string(message).unwrap();
            assert!(!line.contains('\n'), "{line}");
            serde_json::from_str::<StoredMessage>(&line).unwrap()
        });
        kept.map(|stored| stored.redacted(redactor)).collect()
    }

    #[test]
    fn what_is_kept_comes_back_part_by_part() {
        let redactor = Redactor::new([], RedactorSettings::default());
        let before = conversation();
        assert_eq!(kept_and_read(&before, &redactor), before);
    }

    #[test]
    fn a_secret_that_became_known_since_is_taken_out_when_it_is_read() {
        let redactor = Redactor::new([Secret::new("sesame-street")], RedactorSettings::default());
        let before = [
            Message::user("it is sesame-street"),
            Message::tool(CallId::new("c"), "sesame-street"),
        ];
        let after = kept_and_read(&before, &redactor);
        assert_eq!(after[0], Message::user("it is [redacted]"));
        assert_eq!(after[1], Message::tool(CallId::new("c"), "[redacted]"));
    }
}
