//! Images and files in a conversation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An image or a file: what it is, and where its bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaPart {
    /// As in `image/png`.
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub source: MediaSource,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// In the message itself.
    Inline(InlineBytes),
    /// A file in the conversation's workspace, named from there. It may have changed or gone since;
    /// whoever asks a model fetches it first.
    Workspace(String),
}

/// A bounded number of bytes, in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct InlineBytes(String);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum MediaError {
    #[error("{length} bytes are too many to be kept in a message, the limit is {MOST_INLINE}")]
    TooLarge { length: usize },
    #[error("not base64")]
    NotBase64,
}

/// Messages are read whole at every turn, so what is larger stays in the workspace. An image that was
/// scaled to what models look at has some hundred kilobytes.
pub const MOST_INLINE: usize = 1 << 20;

impl MediaPart {
    pub fn inline(media_type: impl Into<String>, bytes: &[u8]) -> Result<Self, MediaError> {
        Ok(Self {
            media_type: media_type.into(),
            name: None,
            source: MediaSource::Inline(InlineBytes::new(bytes)?),
        })
    }

    /// How long its bytes make a message, in base64.
    pub(crate) fn inline_length(&self) -> usize {
        match &self.source {
            MediaSource::Inline(bytes) => bytes.as_base64().len(),
            MediaSource::Workspace(_) => 0,
        }
    }

    /// What a reader is told who cannot be shown it.
    pub(crate) fn described(&self) -> String {
        let name = self.name.as_deref().unwrap_or("without a name");
        match &self.source {
            MediaSource::Inline(_) => format!("[{}, {name}, not shown]", self.media_type),
            MediaSource::Workspace(path) => format!(
                "[{}, {name}, not shown; it was put into the workspace as {path}]",
                self.media_type
            ),
        }
    }
}

impl InlineBytes {
    pub fn new(bytes: &[u8]) -> Result<Self, MediaError> {
        let length = bytes.len();
        if length > MOST_INLINE {
            return Err(MediaError::TooLarge { length });
        }
        Ok(Self(STANDARD.encode(bytes)))
    }

    pub fn as_base64(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for InlineBytes {
    type Error = MediaError;

    fn try_from(base64: String) -> Result<Self, MediaError> {
        let bytes = STANDARD.decode(&base64);
        let length = bytes.map_err(|_| MediaError::NotBase64)?.len();
        if length > MOST_INLINE {
            return Err(MediaError::TooLarge { length });
        }
        Ok(Self(base64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_message_are_bounded_however_they_come_in() {
        let much = vec![0; MOST_INLINE + 1];
        let length = much.len();
        let refused = Err(MediaError::TooLarge { length });
        assert_eq!(InlineBytes::new(&much), refused);
        assert_eq!(InlineBytes::try_from(STANDARD.encode(&much)), refused);
        let broken = InlineBytes::try_from("not base64".to_owned());
        assert_eq!(broken, Err(MediaError::NotBase64));
    }
}
