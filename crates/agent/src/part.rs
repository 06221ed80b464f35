//! What a message is made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_shape::is_shallow;
use crate::{MediaPart, MediaSource, ModelText, ToolCall};

/// A part of what a person said or of what a tool brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart<Text = ModelText> {
    Text {
        text: Text,
    },
    /// No redaction sees what an image shows.
    Image(MediaPart),
    File(MediaPart),
}

/// A part of what the model said. It goes back to the model as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    Text { text: String },
    Image(MediaPart),
    ToolCall(ToolCall),
    Opaque(OpaquePart),
}

/// Something that one provider understands and wants back untouched, where it stood: a block of
/// thinking with its signature, encrypted reasoning.
///
/// Where a provider signs another part, its adapter puts the signature directly before that part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpaquePart {
    provider: String,
    data: Value,
}

/// What an image takes of a model's window: at three bytes for a token, the 1,500 tokens or so that
/// providers count for one of the size they look at.
const IMAGE_SIZE: usize = 4500;

impl MessagePart {
    pub fn text(text: impl Into<ModelText>) -> Self {
        Self::Text { text: text.into() }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text.as_str()),
            Self::Image(_) | Self::File(_) => None,
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(_) => IMAGE_SIZE,
            // Read whole, where it is shown at all: a megabyte of PDF is some twenty pages, at two or three
            // thousand tokens each.
            Self::File(file) => match &file.source {
                MediaSource::Inline(bytes) => bytes.as_base64().len() / 8,
                MediaSource::Workspace(path) => path.len(),
            },
        }
    }
}

impl AssistantPart {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image(_) | Self::ToolCall(_) | Self::Opaque(_) => None,
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(_) => IMAGE_SIZE,
            Self::ToolCall(call) => call.name.len() + call.arguments.len(),
            Self::Opaque(part) => part.data.to_string().len(),
        }
    }
}

impl OpaquePart {
    /// What `provider` wants back.
    pub fn new(provider: impl Into<String>, data: Value) -> Self {
        Self {
            provider: provider.into(),
            data,
        }
    }

    /// Whether it can be read again after it was written down within a message.
    pub(crate) fn is_shallow(&self) -> bool {
        is_shallow(&self.data)
    }

    /// What it holds, for the provider that made it and for no other.
    pub fn for_provider(&self, provider: &str) -> Option<&Value> {
        (self.provider == provider).then_some(&self.data)
    }
}
