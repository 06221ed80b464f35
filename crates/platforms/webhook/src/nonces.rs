//! Nonces that were used.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::signature::WINDOW;

/// Only who holds the secret can fill it. Full, it refuses: forgetting one early would let a
/// recorded request through a second time.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    used: HashMap<String, Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nonce {
    Fresh,
    Used,
    TooMany,
}

impl Nonces {
    const KEPT: usize = 20_000;

    pub(crate) fn take(&mut self, nonce: &str, now: Timestamp) -> Nonce {
        if self.used.contains_key(nonce) {
            return Nonce::Used;
        }
        if self.used.len() >= Self::KEPT {
            // Once early and once late, a timestamp can be good for two windows.
            self.used
                .retain(|_, at| now.duration_since(*at) <= WINDOW * 2);
        }
        if self.used.len() >= Self::KEPT {
            return Nonce::TooMany;
        }
        self.used.insert(nonce.to_owned(), now);
        Nonce::Fresh
    }

    /// Its message was not stored: the sender may try again.
    pub(crate) fn give_back(&mut self, nonce: &str) {
        self.used.remove(nonce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_works_once_and_a_full_house_refuses() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let mut nonces = Nonces::default();
        assert_eq!(nonces.take("a", now), Nonce::Fresh);
        assert_eq!(nonces.take("a", now), Nonce::Used);
        nonces.give_back("a");
        for n in 0..Nonces::KEPT {
            assert_eq!(nonces.take(&n.to_string(), now), Nonce::Fresh);
        }
        assert_eq!(nonces.take("one more", now), Nonce::TooMany);
        assert_eq!(nonces.take("0", now), Nonce::Used);
        let later = now + WINDOW * 2 + jiff::SignedDuration::from_secs(1);
        assert_eq!(nonces.take("one more", later), Nonce::Fresh);
    }
}
