//! Discord's ids: numbers that grow with time, written as text.

use std::fmt;
use std::time::Duration;

use hermetic_chat::Position;
use hermetic_types::{ChatId, MessageId, ThreadId, Timestamp, UpdateId, UserId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The first moment that an id can tell, in milliseconds of Unix time.
const EPOCH_MS: i64 = 1_420_070_400_000;
/// The bits below the time.
const TIME_SHIFT: u32 = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Snowflake(i64);

#[derive(Debug, Error)]
#[error("not an id of discord")]
pub(crate) struct NoSnowflake;

impl Snowflake {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && *number > 0);
        number.map(Self)
    }

    /// The lowest id of a moment.
    pub(crate) fn at(time: Timestamp) -> Self {
        let since = time.millis().saturating_sub(EPOCH_MS).max(0);
        Self(since.saturating_mul(1 << TIME_SHIFT).max(1))
    }

    /// The lowest id of the moment so long before `now`.
    pub(crate) fn before(now: Timestamp, ago: Duration) -> Self {
        Self::at(now.minus(ago))
    }

    /// The id that lies so long before this one.
    pub(crate) fn earlier(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(ticks(by)).max(1))
    }

    pub(crate) fn later(self, by: Duration) -> Self {
        Self(self.0.saturating_add(ticks(by)))
    }

    pub(crate) fn position(self) -> Position {
        self.0.unsigned_abs()
    }

    pub(crate) fn from_position(position: Position) -> Self {
        Self(i64::try_from(position).unwrap_or(i64::MAX).max(1))
    }
}

fn ticks(time: Duration) -> i64 {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    millis.saturating_mul(1 << TIME_SHIFT)
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Snowflake {
    type Error = NoSnowflake;

    fn try_from(text: String) -> Result<Self, NoSnowflake> {
        Self::parse(&text).ok_or(NoSnowflake)
    }
}

impl From<Snowflake> for String {
    fn from(id: Snowflake) -> Self {
        id.to_string()
    }
}

macro_rules! becomes {
    ($($name:ident),*) => {
        $(impl From<Snowflake> for $name {
            fn from(id: Snowflake) -> Self {
                Self::from(id.0)
            }
        })*
    };
}

becomes!(ChatId, MessageId, ThreadId, UpdateId, UserId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_time() {
        // The example of Discord's own documentation.
        let time: Timestamp = "2016-04-30T11:18:25.796Z".parse().unwrap();
        let id = Snowflake::parse("175928847299117063").unwrap();
        assert_eq!(Snowflake::at(time).0 >> TIME_SHIFT, id.0 >> TIME_SHIFT);
        assert!(Snowflake::before(time, Duration::from_secs(1)) < id);
        assert_eq!(Snowflake::from_position(id.position()), id);
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "0", "-1", "+1", " 1", "1a", "99999999999999999999"] {
            assert_eq!(Snowflake::parse(text), None, "{text:?}");
        }
    }
}
