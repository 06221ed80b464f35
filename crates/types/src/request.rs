//! The name of a question that waits for a person.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Five characters, short enough to type. It names a question and opens nothing: who may answer is
/// decided by who answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestId(String);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("not the name of a question; expected five letters and digits such as k7q2m")]
pub struct InvalidRequestId;

/// Without letters that look like digits, and 32 of them, so that none is favoured.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 5;

impl RequestId {
    pub fn random() -> Self {
        // The last six bytes of a random UUID are random throughout.
        let uuid = Uuid::new_v4();
        let random = uuid.as_bytes()[10..].iter().take(LENGTH);
        Self(
            random
                .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
                .collect(),
        )
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RequestId {
    type Err = InvalidRequestId;

    /// As people type it: any case, an `o` for a zero, an `l` or `i` for a one.
    fn from_str(text: &str) -> Result<Self, InvalidRequestId> {
        let id: String = text
            .chars()
            .take(LENGTH + 1)
            .map(|c| match c.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            })
            .collect();
        let known = id.bytes().all(|byte| ALPHABET.contains(&byte));
        if id.len() == LENGTH && known {
            Ok(Self(id))
        } else {
            Err(InvalidRequestId)
        }
    }
}

impl TryFrom<String> for RequestId {
    type Error = InvalidRequestId;

    fn try_from(text: String) -> Result<Self, InvalidRequestId> {
        text.parse()
    }
}

impl From<RequestId> for String {
    fn from(id: RequestId) -> Self {
        id.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_people_type_it() {
        let id = RequestId::random();
        assert_eq!(id.as_str().to_uppercase().parse(), Ok(id));
        assert_eq!("K7OIL".parse::<RequestId>().unwrap().as_str(), "k7011");
        for text in ["", "k7q2", "k7q2mm", "k7q2!", "session", "ключ5"] {
            assert_eq!(text.parse::<RequestId>(), Err(InvalidRequestId), "{text:?}");
        }
    }
}
