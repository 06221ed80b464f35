//! What was said in a conversation, whoever the provider is.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{AssistantPart, MessagePart, ModelText};

/// One message of a conversation.
///
/// Every text in it that the model did not write itself is a [`ModelText`]. The history keeps messages
/// as JSON, and what is read from there has to be redacted before it is one again: see
/// [`StoredMessage`](crate::StoredMessage).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message<Text = ModelText> {
    System {
        text: Text,
    },
    User {
        parts: Vec<MessagePart<Text>>,
    },
    Assistant {
        /// In the order in which the model made them. Some providers refuse another one.
        parts: Vec<AssistantPart>,
    },
    /// What a tool brought back. Every call of an assistant's message has exactly one.
    Tool {
        call_id: CallId,
        #[serde(default, skip_serializing_if = "is_false")]
        failed: bool,
        parts: Vec<MessagePart<Text>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// As the model wrote them: hopefully JSON.
    pub arguments: String,
}

/// One call of a tool, known by this name in the history and in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(String);

impl Message {
    pub fn system(text: impl Into<ModelText>) -> Self {
        Self::System { text: text.into() }
    }

    pub fn user(text: impl Into<ModelText>) -> Self {
        Self::User {
            parts: vec![MessagePart::text(text)],
        }
    }

    /// Words of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            parts: vec![AssistantPart::text(text)],
        }
    }

    /// What a tool that did what it should brought back.
    pub fn tool(call_id: CallId, text: impl Into<ModelText>) -> Self {
        Self::Tool {
            call_id,
            failed: false,
            parts: vec![MessagePart::text(text)],
        }
    }

    /// What a tool said that did not do what it should.
    pub fn failed_tool(call_id: CallId, text: impl Into<ModelText>) -> Self {
        Self::Tool {
            call_id,
            failed: true,
            parts: vec![MessagePart::text(text)],
        }
    }

    /// All of its text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::System { text } => text.as_str().into(),
            Self::User { parts } | Self::Tool { parts, .. } => joined(parts, "\n"),
            Self::Assistant { parts } => {
                joined_texts(parts.iter().filter_map(AssistantPart::as_text), "")
            }
        }
    }

    /// The calls the model made with it.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = match self {
            Self::Assistant { parts } => parts.as_slice(),
            Self::System { .. } | Self::User { .. } | Self::Tool { .. } => &[],
        };
        parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Whether it holds images or files that a model is shown.
    pub(crate) fn has_media(&self) -> bool {
        match self {
            Self::User { parts } | Self::Tool { parts, .. } => {
                parts.iter().any(|part| part.as_text().is_none())
            }
            Self::System { .. } | Self::Assistant { .. } => false,
        }
    }

    /// How much of a model's window it takes, as bytes of text.
    pub fn size(&self) -> usize {
        match self {
            Self::System { text } => text.len(),
            Self::User { parts } | Self::Tool { parts, .. } => {
                parts.iter().map(MessagePart::size).sum()
            }
            Self::Assistant { parts } => parts.iter().map(AssistantPart::size).sum(),
        }
    }
}

/// The texts among `parts`, without a copy where there is one.
pub(crate) fn joined<'a>(parts: &'a [MessagePart], between: &str) -> Cow<'a, str> {
    joined_texts(parts.iter().filter_map(MessagePart::as_text), between)
}

fn joined_texts<'a>(mut texts: impl Iterator<Item = &'a str>, between: &str) -> Cow<'a, str> {
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else {
        return first.into();
    };
    let mut all = vec![first, second];
    all.extend(texts);
    all.join(between).into()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl CallId {
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn random() -> Self {
        Self(format!("call_{}", Uuid::new_v4().simple()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
