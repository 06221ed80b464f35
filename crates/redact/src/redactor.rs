//! The way in.

use std::fmt;
use std::sync::Arc;

use hermetic_types::Secret;

use crate::redacted::Redacted;
use crate::secret_matcher::SecretMatcher;
use crate::stream::StreamRedactor;

/// Takes secrets out of text. Made once; clones share everything.
#[derive(Clone)]
pub struct Redactor(Arc<SecretMatcher>);

/// The choices of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Looks for what has the shape of a secret. Known values are taken out either way.
    pub shapes: bool,
    /// Known values shorter than this are ignored: taking out every `1234` would ruin the text and
    /// hide nothing.
    pub shortest_known: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            shapes: true,
            shortest_known: 6,
        }
    }
}

impl Redactor {
    /// Looks for `known` values as they are, reversed, in hexadecimal, percent-encoded, escaped as
    /// in JSON, and in base64 at any offset within something larger, across its line breaks.
    pub fn new(known: impl IntoIterator<Item = Secret>, settings: Settings) -> Self {
        Self(Arc::new(SecretMatcher::new(known, settings)))
    }

    pub fn redact(&self, text: impl AsRef<str>) -> Redacted<String> {
        let bytes = self.redact_bytes(text.as_ref().as_bytes()).into_inner();
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Redacted::new(text)
    }

    /// What is recognised in the text is gone everywhere in it, before that place and after it.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Redacted<Vec<u8>> {
        let mut stream = self.stream();
        let mut whole = pass(&mut stream, bytes);
        // What was recognised at one place may have stood at an earlier one.
        if let Some(mut again) = stream.again() {
            whole = pass(&mut again, bytes);
        }
        Redacted::new(whole)
    }

    /// For output that arrives in pieces.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(Arc::clone(&self.0))
    }

    /// How many known values were too short to look for.
    pub fn ignored(&self) -> usize {
        self.0.ignored()
    }
}

fn pass(stream: &mut StreamRedactor, bytes: &[u8]) -> Vec<u8> {
    let mut whole = stream.push(bytes).into_inner();
    whole.extend(stream.give_rest().into_inner());
    whole
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("forms", &self.0.forms())
            .finish_non_exhaustive()
    }
}
