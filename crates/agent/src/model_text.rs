//! The proof that a text may go to a model.

use hermetic_redact::{Redacted, Redactor, SpokenText};
use serde::Serialize;

/// Text that may go to a model.
///
/// It is made of what was [`Redacted`], or of a text of ours that is known at compile time. Anything
/// else does not compile:
///
/// ```compile_fail,E0277
/// use hermetic_agent::Message;
///
/// let output = String::from_utf8_lossy(b"what a command wrote").into_owned();
/// let message = Message::user(output);
/// ```
///
/// Nor can it be read from anywhere, for JSON has no proof:
///
/// ```compile_fail,E0277
/// use hermetic_agent::Message;
///
/// let message: Message = serde_json::from_str("{}").unwrap();
/// ```
///
/// What a program keeps comes back as a [`StoredMessage`](crate::StoredMessage), which is redacted by
/// the rules and values of today.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ModelText(String);

impl ModelText {
    /// What a person said: see [`Redactor::redact_spoken`].
    pub fn spoken(words: &str, redactor: &Redactor) -> Self {
        redactor.redact_spoken(words).into()
    }

    /// A text that was put together in this crate, of texts with a proof, of words of our own and of
    /// what the model itself wrote.
    pub(crate) fn assembled(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Redacted<String>> for ModelText {
    fn from(text: Redacted<String>) -> Self {
        Self(text.into_inner())
    }
}

impl From<Redacted<SpokenText>> for ModelText {
    fn from(words: Redacted<SpokenText>) -> Self {
        Self(words.into_inner().into_string())
    }
}

impl From<&'static str> for ModelText {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl AsRef<str> for ModelText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
