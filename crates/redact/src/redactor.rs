//! The way in.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hermetic_types::Secret;
use serde_json::{Map, Value};

use crate::redacted::{Redacted, SpokenText};
use crate::secret_matcher::SecretMatcher;
use crate::stream::StreamRedactor;

/// Takes secrets out of text. Made once; clones share everything, what is learned later included.
#[derive(Clone)]
pub struct Redactor(Arc<SharedMatcher>);

struct SharedMatcher {
    /// Replaced as a whole when something is learned: whoever looks holds the one of before.
    matcher: RwLock<Arc<SecretMatcher>>,
    secrets: Mutex<KnownSecrets>,
    settings: RedactorSettings,
}

struct KnownSecrets {
    configured: Vec<Secret>,
    /// The latest ones, the oldest first.
    learned: VecDeque<Secret>,
}

/// Secrets that came while the program ran, such as tokens that were renewed. Older ones have ended.
const MOST_LEARNED: usize = 256;

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
        let configured: Vec<Secret> = known.into_iter().collect();
        let matcher = SecretMatcher::new(configured.iter().cloned(), settings);
        Self(Arc::new(SharedMatcher {
            matcher: RwLock::new(Arc::new(matcher)),
            secrets: Mutex::new(KnownSecrets {
                configured,
                learned: VecDeque::new(),
            }),
            settings,
        }))
    }

    /// Takes these out as well from now on, for every clone. A stream that was begun before does not know
    /// them.
    pub fn learn(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.learn_instead(&[], secrets);
    }

    /// The same, and what was learned before and is over is left in texts again.
    pub fn learn_instead(&self, over: &[Secret], secrets: impl IntoIterator<Item = Secret>) {
        let mut known = self
            .0
            .secrets
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = known.learned.len();
        known.learned.retain(|secret| !over.contains(secret));
        let mut has_changed = known.learned.len() != before;
        for secret in secrets {
            if known.configured.contains(&secret) || known.learned.contains(&secret) {
                continue;
            }
            if known.learned.len() == MOST_LEARNED {
                known.learned.pop_front();
            }
            known.learned.push_back(secret);
            has_changed = true;
        }
        if !has_changed {
            return;
        }
        let all = known.configured.iter().chain(&known.learned).cloned();
        let matcher = Arc::new(SecretMatcher::new(all, self.0.settings));
        // Under the lock of the list: of two who learn at once, the later one has both.
        *self
            .0
            .matcher
            .write()
            .unwrap_or_else(PoisonError::into_inner) = matcher;
    }

    fn matcher(&self) -> Arc<SecretMatcher> {
        Arc::clone(
            &self
                .0
                .matcher
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
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
        let mut stream = StreamRedactor::of_known_values(self.matcher());
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
        StreamRedactor::new(self.matcher())
    }

    /// How many known values were too short to look for.
    pub fn ignored(&self) -> usize {
        self.matcher().ignored()
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
            .field("forms", &self.matcher().forms())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learned_is_gone_for_every_clone() {
        let redactor = Redactor::new([Secret::new("of-the-file")], RedactorSettings::default());
        let clone = redactor.clone();
        let said = "of-the-file and renewed-later";
        assert!(clone.redact(said).as_str().contains("renewed-later"));
        redactor.learn([Secret::new("renewed-later"), Secret::new("of-the-file")]);
        let left = clone.redact(said).into_inner();
        assert!(
            !left.contains("renewed-later") && !left.contains("of-the-file"),
            "{left}"
        );
    }

    #[test]
    fn what_is_learned_is_bounded_and_what_is_configured_stays() {
        let redactor = Redactor::new([Secret::new("of-the-file")], RedactorSettings::default());
        let tokens = (0..=MOST_LEARNED).map(|number| format!("token-number-{number}"));
        redactor.learn(tokens.map(Secret::new));
        let left = redactor
            .redact("of-the-file token-number-0 token-number-7")
            .into_inner();
        assert!(
            !left.contains("of-the-file") && !left.contains("number-7"),
            "{left}"
        );
        assert!(left.contains("token-number-0"), "{left}");
    }
}
