//! Nonces that were used.

use std::collections::HashMap;

use hermetic_types::Timestamp;

use crate::signature::WINDOW;

/// Only who holds the secret can fill it. Full, it refuses: forgetting one early would let a
/// recorded request through a second time.
#[derive(Debug, Default)]
pub(crate) struct UsedNonces {
    used: HashMap<String, Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonceCheck {
    Fresh,
    Used,
    TooMany,
}

impl UsedNonces {
    /// Of two windows, the longest for which a timestamp can be good.
    const KEPT: usize = 20_000;

    pub(crate) fn take(&mut self, nonce: &str, now: Timestamp) -> NonceCheck {
        if self.used.contains_key(nonce) {
            return NonceCheck::Used;
        }
        if self.used.len() >= Self::KEPT {
            // Once early and once late, a timestamp can be good for two windows. What lies ahead as far
            // was noted by a clock that has been set back since: it is as stale as what is old, and kept
            // it would take the room for as long as that clock was ahead.
            self.used.retain(|_, at| now.distance(*at) <= WINDOW * 2);
        }
        if self.used.len() >= Self::KEPT {
            return NonceCheck::TooMany;
        }
        self.used.insert(nonce.to_owned(), now);
        NonceCheck::Fresh
    }

    /// Its message was not stored: the sender may try again.
    pub(crate) fn give_back(&mut self, nonce: &str) {
        self.used.remove(nonce);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_nonce_works_once_and_a_full_house_refuses() {
        let now = Timestamp::from_seconds(1_700_000_000);
        let mut nonces = UsedNonces::default();
        assert_eq!(nonces.take("a", now), NonceCheck::Fresh);
        assert_eq!(nonces.take("a", now), NonceCheck::Used);
        nonces.give_back("a");
        for n in 0..UsedNonces::KEPT {
            assert_eq!(nonces.take(&n.to_string(), now), NonceCheck::Fresh);
        }
        assert_eq!(nonces.take("one more", now), NonceCheck::TooMany);
        assert_eq!(nonces.take("0", now), NonceCheck::Used);
        let later = now.plus(WINDOW * 2 + Duration::from_secs(1));
        assert_eq!(nonces.take("one more", later), NonceCheck::Fresh);
    }

    #[test]
    fn a_house_filled_by_a_clock_that_was_ahead_is_not_full_for_as_long() {
        let ahead = Timestamp::from_seconds(1_800_000_000);
        let mut nonces = UsedNonces::default();
        for n in 0..UsedNonces::KEPT {
            assert_eq!(nonces.take(&n.to_string(), ahead), NonceCheck::Fresh);
        }
        // Set back within the window, a recorded request would still be fresh.
        let a_little = ahead.minus(WINDOW);
        assert_eq!(nonces.take("one more", a_little), NonceCheck::TooMany);
        assert_eq!(nonces.take("0", a_little), NonceCheck::Used);
        let far = Timestamp::from_seconds(1_700_000_000);
        assert_eq!(nonces.take("one more", far), NonceCheck::Fresh);
    }
}
