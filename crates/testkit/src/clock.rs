//! A wall clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hermetic_types::{Clock, SharedClock, SystemClock, Timestamp};

/// Stands still until it is moved. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.millis())))
    }

    /// Begins with the time of day, for parts that also look at files which somebody else stamped.
    pub fn today() -> Self {
        Self::at(SystemClock.now())
    }

    /// The same clock, as parts are handed it.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// Time passes.
    pub fn advance(&self, time: Duration) {
        self.set(self.now().plus(time));
    }

    /// Somebody sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_handed_the_clock_sees_it_move() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        let handed = clock.shared();
        clock.advance(Duration::from_secs(2));
        assert_eq!(handed.now(), Timestamp::from_millis(3_000));
        clock.set(Timestamp::from_millis(5));
        assert_eq!(handed.now(), Timestamp::from_millis(5));
    }
}
