//! The proof that something went through redaction.

use std::fmt;

use hermetic_types::RunId;
use serde_json::Value;

/// Something that may leave: secrets have been taken out of it.
///
/// Only this crate makes one out of text it was given, so a reply that skipped redaction does not
/// compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted<T>(T);

/// Words of somebody who takes part in a conversation, on their way to the model.
///
/// [`Redactor::redact_spoken`](crate::Redactor::redact_spoken) makes it out of what was said. It is a
/// type of its own because less was taken out of it than a chat or a log requires: neither takes it.
///
/// ```compile_fail,E0308
/// use hermetic_redact::{Redacted, Redactor, RedactorSettings};
///
/// let redactor = Redactor::new([], RedactorSettings::default());
/// let reply: Redacted<String> = redactor.redact_spoken("what somebody said");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpokenText(String);

impl<T> Redacted<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(inner)
    }

    pub fn get(&self) -> &T {
        &self.0
    }

    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Redacted<String> {
    /// A text of our own, known at compile time and therefore free of secrets.
    pub fn constant(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// A random name of ours, which gives nothing away.
    pub fn run_id(id: &RunId) -> Self {
        Self(id.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Puts one redacted text after another.
    #[must_use]
    pub fn then(mut self, next: &Self) -> Self {
        self.0.push_str(&next.0);
        self
    }
}

impl Redacted<Value> {
    /// The JSON as text on one line.
    pub fn to_text(&self) -> Redacted<String> {
        Redacted(self.0.to_string())
    }
}

impl SpokenText {
    pub(crate) fn new(words: String) -> Self {
        Self(words)
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl AsRef<str> for Redacted<String> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Redacted<Vec<u8>> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
