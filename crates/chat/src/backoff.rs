//! How long to wait before trying again.

use std::time::Duration;

/// Doubles from `first` to `most`, each wait shortened at random by up to a half, so that many
/// clients of a service that comes back do not come back at once.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            failures: 0,
        }
    }

    /// Begins again with the shortest wait.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait before the next attempt.
    pub fn next_wait(&mut self) -> Duration {
        let full = self
            .first
            // Far beyond any longest wait there is; unbounded, the shift would overflow after a
            // night of failures.
            .saturating_mul(1 << self.failures.min(16))
            .min(self.most);
        self.failures = self.failures.saturating_add(1);
        full.mul_f64(1.0 - jitter() / 2.0)
    }
}

/// Between 0 and 1. Without random numbers there is no jitter, which is no reason to fail.
fn jitter() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        for failure in 0..40u32 {
            let full = Duration::from_secs(2u64.pow(failure.min(6))).min(Duration::from_secs(60));
            let wait = backoff.next_wait();
            assert!(
                wait >= full / 2 && wait <= full,
                "{failure}: {wait:?} of {full:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_secs(1));
    }
}
