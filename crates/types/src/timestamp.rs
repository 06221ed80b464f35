//! A moment, as rows keep it and as every part compares it.

#[cfg(feature = "calendar")]
mod calendar;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(feature = "calendar")]
pub use calendar::rfc3339;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970. Nothing here reads a clock: whoever knows the time says so.
///
/// No arithmetic with it fails or wraps around: stamps come from rows, from files and from strangers, and
/// an absurd one is only very early or very late. Whoever needs a calendar asks for one
/// (`Timestamp::calendar`); nobody compares or keeps what he gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const UNIX_EPOCH: Self = Self(0);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// As protocols spell it.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded towards the past.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    pub const fn micros(self) -> i64 {
        self.0.saturating_mul(1000)
    }

    pub fn plus(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The moment so long before this one.
    pub fn minus(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long ago `earlier` was; nothing if it lies ahead, as after a clock was set back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// How far the two are apart, whichever is the later one.
    pub fn distance(self, other: Self) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// For libraries that want the standard library's type.
impl From<Timestamp> for SystemTime {
    fn from(at: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_moments_are_early_or_late_and_nothing_else() {
        let (first, last) = (
            Timestamp::from_millis(i64::MIN),
            Timestamp::from_millis(i64::MAX),
        );
        let year = Duration::from_secs(365 * 24 * 3600);
        assert_eq!(last.plus(year), last);
        assert_eq!(first.minus(year), first);
        assert_eq!(Timestamp::from_seconds(i64::MAX), last);
        assert_eq!(first.since(last), Duration::ZERO);
        assert_eq!(last.distance(first), first.distance(last));
        let _ = (SystemTime::from(first), SystemTime::from(last));
    }

    #[test]
    fn a_moment_before_1970_is_rounded_towards_the_past() {
        assert_eq!(Timestamp::from_millis(-1).seconds(), -1);
        assert_eq!(Timestamp::from_millis(1999).seconds(), 1);
    }
}
