//! A moment as people and earlier versions write it.
//!
//! Apart from [`Timestamp`] itself because it stands on a library of calendars, which the program inside of a
//! sandbox has no use for and need not compile.

use std::fmt;
use std::str::FromStr;

use super::Timestamp;

impl Timestamp {
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
    use serde::{Deserialize, Serialize};

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
    fn absurd_moments_have_the_nearest_date() {
        let (first, last) = (
            Timestamp::from_millis(i64::MIN),
            Timestamp::from_millis(i64::MAX),
        );
        assert_eq!(last.to_string(), i64::MAX.to_string());
        assert_eq!(first.calendar(), jiff::Timestamp::MIN);
        assert_eq!(last.calendar(), jiff::Timestamp::MAX);
    }
}
