//! The way in.

use std::fmt;
use std::sync::Arc;

use hermetic_types::Secret;
use serde_json::{Map, Value};

use crate::redacted::{Redacted, SpokenText};
use crate::secret_matcher::SecretMatcher;
use crate::stream::StreamRedactor;

/// Takes secrets out of text. Made once; clones share everything.
#[derive(Clone)]
pub struct Redactor(Arc<SecretMatcher>);

/// The choices of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedactorSettings {
    /// Looks for what has the shape of a secret. Known values are taken out either way.
    pub shapes: bool,
    /// Known values shorter than this are ignored: taking out every `1234` would ruin the text and
    /// hide nothing.
    pub shortest_known: usize,
}

impl Default for RedactorSettings {
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
    pub fn new(known: impl IntoIterator<Item = Secret>, settings: RedactorSettings) -> Self {
        Self(Arc::new(SecretMatcher::new(known, settings)))
    }

    pub fn redact(&self, text: impl AsRef<str>) -> Redacted<String> {
        let bytes = self.redact_bytes(text.as_ref().as_bytes()).into_inner();
        Redacted::new(to_text(bytes))
    }

    /// Takes the known values out of words that somebody says to the model, and nothing else.
    ///
    /// Whoever hands the model a password wants it used, so what has only the shape of a secret stays;
    /// the values of the configuration are the operator's and nobody has to say them.
    pub fn redact_spoken(&self, words: impl AsRef<str>) -> Redacted<SpokenText> {
        let mut stream = StreamRedactor::of_known_values(Arc::clone(&self.0));
        let bytes = pass(&mut stream, words.as_ref().as_bytes());
        Redacted::new(SpokenText::new(to_text(bytes)))
    }

    /// Redacts every text in it, each by itself, names of fields included.
    pub fn redact_json(&self, json: Value) -> Redacted<Value> {
        let inner = |json: Value| self.redact_json(json).into_inner();
        Redacted::new(match json {
            Value::String(text) => Value::String(self.redact(text).into_inner()),
            Value::Array(items) => items.into_iter().map(inner).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| (self.redact(name).into_inner(), inner(value)))
                .collect::<Map<_, _>>()
                .into(),
            other => other,
        })
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

/// A mask may have replaced a part of a character.
fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
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
