//! A moment, as rows keep it and as every part compares it.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970. Nothing here reads a clock: whoever knows the time says so.
///
/// No arithmetic with it fails or wraps around: stamps come from rows, from files and from strangers, and
/// an absurd one is only very early or very late. Whoever needs a calendar asks for one
/// ([`Timestamp::calendar`]); nobody compares or keeps what he gets.
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

    /// The same moment for whoever needs days and hours; outside of what a calendar knows, its nearest.
    pub fn calendar(self) -> jiff::Timestamp {
        let nearest = match self.0 < 0 {
            true => jiff::Timestamp::MIN,
            false => jiff::Timestamp::MAX,
        };
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(nearest)
    }
}

/// As in RFC 3339, in UTC; a moment that no calendar knows is a number.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(calendar) => calendar.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}

/// From RFC 3339; what is finer than a millisecond is left out.
impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<jiff::Timestamp>()?.into())
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(calendar: jiff::Timestamp) -> Self {
        Self(calendar.as_millisecond())
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

/// Writes and reads a moment as text, where files and rows of earlier versions have it so.
pub mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::Timestamp;

    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&at.calendar())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }

    /// The same for a moment that may not be there.
    pub mod option {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Timestamp;

        #[derive(Serialize, Deserialize)]
        struct AsText(#[serde(with = "super")] Timestamp);

        pub fn serialize<S: Serializer>(
            at: &Option<Timestamp>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            at.map(AsText).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            let read = Option::<AsText>::deserialize(deserializer)?;
            Ok(read.map(|AsText(at)| at))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        #[serde(with = "rfc3339")]
        at: Timestamp,
        #[serde(with = "rfc3339::option")]
        until: Option<Timestamp>,
    }

    #[test]
    fn what_earlier_versions_wrote_is_read_and_written_as_they_can_read_it() {
        let written = r#"{"at":"2026-11-17T12:00:00.123456789Z","until":null}"#;
        let mut row: Row = serde_json::from_str(written).unwrap();
        assert_eq!(row.at.millis() % 1000, 123);
        row.until = Some(Timestamp::from_seconds(1_700_000_000));
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(
            text,
            r#"{"at":"2026-11-17T12:00:00.123Z","until":"2023-11-14T22:13:20Z"}"#
        );
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }

    #[test]
    fn rows_keep_a_number() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(serde_json::to_string(&at).unwrap(), "1700000000123");
        assert_eq!(at.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(format!("{at:.0}"), "2023-11-14T22:13:20Z");
    }

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
        assert_eq!(last.to_string(), i64::MAX.to_string());
        assert_eq!(first.calendar(), jiff::Timestamp::MIN);
        assert_eq!(last.calendar(), jiff::Timestamp::MAX);
        let _ = (SystemTime::from(first), SystemTime::from(last));
    }

    #[test]
    fn a_moment_before_1970_is_rounded_towards_the_past() {
        assert_eq!(Timestamp::from_millis(-1).seconds(), -1);
        assert_eq!(Timestamp::from_millis(1999).seconds(), 1);
    }
}
