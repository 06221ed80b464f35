//! The time of a message, which is its name within a channel.

use std::fmt;

use hermetic_chat::Position;
use hermetic_types::{MessageId, ThreadId};

/// Seconds and microseconds, written `1700000000.000100` by Slack.
///
/// Our own ids of messages are written without the dot, as in Slack's permalinks: so they are numbers
/// that grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlackTimestamp(u64);

impl SlackTimestamp {
    const MICROS: u64 = 1_000_000;

    /// `None` unless it is written exactly so. Slack takes other spellings for no thread at all and
    /// posts to the channel.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (seconds, micros) = text.split_once('.')?;
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let plain = (1..=12).contains(&seconds.len()) && micros.len() == 6;
        if !plain || !digits(seconds) || !digits(micros) {
            return None;
        }
        let seconds: u64 = seconds.parse().ok()?;
        Some(Self(seconds * Self::MICROS + micros.parse::<u64>().ok()?))
    }

    pub(crate) fn of_message(message: &MessageId) -> Option<Self> {
        let digits = message.as_str();
        let plain = digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit());
        if plain {
            digits.parse().ok().map(Self)
        } else {
            None
        }
    }

    pub(crate) fn of_thread(thread: &ThreadId) -> Option<Self> {
        Self::parse(thread.as_str())
    }

    pub(crate) fn at(position: Position) -> Self {
        Self(position)
    }

    pub(crate) fn position(self) -> Position {
        self.0
    }

    pub(crate) fn message_id(self) -> MessageId {
        MessageId::from(i64::try_from(self.0).unwrap_or(i64::MAX))
    }

    pub(crate) fn thread_id(self) -> Option<ThreadId> {
        ThreadId::new(self.to_string()).ok()
    }
}

impl fmt::Display for SlackTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / Self::MICROS, self.0 % Self::MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_one_way() {
        let ts = SlackTimestamp::parse("1700000000.000100").unwrap();
        assert_eq!(ts.to_string(), "1700000000.000100");
        assert_eq!(ts.message_id().as_str(), "1700000000000100");
        assert_eq!(SlackTimestamp::of_message(&ts.message_id()), Some(ts));
        assert_eq!(
            SlackTimestamp::of_thread(&ts.thread_id().unwrap()),
            Some(ts)
        );
        for odd in [
            "",
            "1700000000",
            "1700000000.0001",
            "1700000000.00010a",
            "-1.000000",
            "+1.000000",
            "1.0000000",
            "9999999999999.000000",
            " 1.000000",
        ] {
            assert_eq!(SlackTimestamp::parse(odd), None, "{odd:?}");
        }
    }
}
