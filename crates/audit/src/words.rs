//! Text in a record: redacted, and never long.

use hermetic_redact::Redacted;
use serde::Serialize;

/// A text that may be written down. What is too long is cut, and says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AuditText(String);

impl AuditText {
    /// A control character takes six bytes in JSON, and a record has up to six of these.
    const LONGEST: usize = 1536;

    /// A text of our own, known at compile time and therefore free of secrets.
    pub fn constant(text: &'static str) -> Self {
        Self::cut(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn cut(text: &str) -> Self {
        if text.len() <= Self::LONGEST {
            return Self(text.to_owned());
        }
        let kept = &text[..text.floor_char_boundary(Self::LONGEST)];
        Self(format!("{kept}… ({} bytes)", text.len()))
    }
}

impl From<&Redacted<String>> for AuditText {
    fn from(text: &Redacted<String>) -> Self {
        Self::cut(text.as_str())
    }
}

impl From<Redacted<String>> for AuditText {
    fn from(text: Redacted<String>) -> Self {
        Self::from(&text)
    }
}
