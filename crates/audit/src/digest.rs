//! A hash of a record, and how it is written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordDigest([u8; 32]);

/// Digits of one digest.
pub(crate) type HexDigits = [u8; 64];

impl RecordDigest {
    pub(crate) const ZERO: Self = Self([0; 32]);

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn of_record(body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // So that a hash of a record is never the hash of anything else that somebody could have us
        // make.
        hash.update(b"hermetic audit 1\n");
        hash.update(body);
        Self(hash.finalize().into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// By a table: five of them are written for each record, and formatting took a third of its time.
    pub(crate) fn hex(&self) -> HexDigits {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        hex
    }

    /// Only lower-case digits: a digest has one spelling.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        let digits: &HexDigits = digits.try_into().ok()?;
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.hex();
        f.write_str(std::str::from_utf8(&hex).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text.as_bytes()).ok_or("expected 64 lower-case hex digits")
    }
}

impl Serialize for RecordDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DigestText;

        impl serde::de::Visitor<'_> for DigestText {
            type Value = RecordDigest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hex digits")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RecordDigest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(DigestText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = RecordDigest::of(b"");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        let upper = text.to_uppercase();
        for wrong in [
            "",
            &text[1..],
            &format!("{text}0"),
            &upper,
            &text.replace('e', "g"),
        ] {
            assert!(wrong.parse::<RecordDigest>().is_err(), "{wrong}");
        }
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<RecordDigest>(&json).unwrap(), digest);
        // The same letters, written as an escape.
        let escaped = json.replacen('e', "\\u0065", 1);
        assert_eq!(
            serde_json::from_str::<RecordDigest>(&escaped).unwrap(),
            digest
        );
    }
}
