//! The proof that something went through redaction.

use std::fmt;

/// Something that may leave: secrets have been taken out of it.
///
/// Only this crate makes one out of text it was given, so a reply that skipped redaction does not
/// compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted<T>(T);

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
