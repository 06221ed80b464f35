//! Pairing codes: what is shown to a stranger, and what we keep of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Without `I`, `O`, `0` and `1`, which people mix up. 32 of them, so that a random byte maps onto
/// one without favouring any.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const LENGTH: usize = 8;

/// Eight characters that a stranger reads to the operator. Shown once, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode(String);

/// What is left of a code at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeHash {
    salt: [u8; 16],
    digest: [u8; 32],
}

impl PairingCode {
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes)?;
        Ok(Self(
            bytes
                .iter()
                .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
                .collect(),
        ))
    }

    /// As people type it: any case, with dashes or spaces.
    pub fn typed(text: &str) -> Option<Self> {
        let code: String = text
            .chars()
            .filter(|c| !matches!(c, '-' | ' '))
            .map(|c| c.to_ascii_uppercase())
            // One more than a code has, which is enough to see that it is too long.
            .take(LENGTH + 1)
            .collect();
        let known = code.bytes().all(|byte| ALPHABET.contains(&byte));
        (code.len() == LENGTH && known).then_some(Self(code))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> Result<CodeHash, getrandom::Error> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        Ok(CodeHash {
            salt,
            digest: digest(&salt, self),
        })
    }
}

impl CodeHash {
    pub(crate) fn is_of(&self, code: &PairingCode) -> bool {
        // In constant time, because whoever guesses may measure.
        digest(&self.salt, code).ct_eq(&self.digest).into()
    }
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[pairing code]")
    }
}

fn digest(salt: &[u8; 16], code: &PairingCode) -> [u8; 32] {
    Sha256::new()
        .chain_update(salt)
        .chain_update(code.0.as_bytes())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_no_twins() {
        let mut letters = ALPHABET.to_vec();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), 32);
        assert!(!letters.iter().any(|letter| b"IO01".contains(letter)));
    }

    #[test]
    fn a_code_survives_being_typed_and_does_not_print() {
        let code = PairingCode::random().unwrap();
        let (head, tail) = code.as_str().split_at(4);
        let typed = format!(" {}-{tail} ", head.to_lowercase());
        assert_eq!(PairingCode::typed(&typed), Some(code.clone()));
        assert_eq!(format!("{code:?}"), "[pairing code]");
    }

    #[test]
    fn what_is_no_code_is_none() {
        for text in [
            "",
            "ABCDEFG",
            "ABCDEFGHJ",
            "ABCDEFG0",
            "ABCDEFGÄ",
            &"A".repeat(1 << 20),
        ] {
            assert_eq!(PairingCode::typed(text), None);
        }
    }

    #[test]
    fn a_hash_knows_its_code_only() {
        let (one, two) = (
            PairingCode::random().unwrap(),
            PairingCode::random().unwrap(),
        );
        let hash = one.hash().unwrap();
        assert!(hash.is_of(&one) && !hash.is_of(&two));
        assert_ne!(hash, one.hash().unwrap(), "the salt is fresh each time");
    }
}
