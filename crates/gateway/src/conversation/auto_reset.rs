//! When a conversation starts afresh by itself.

use std::time::Duration;

use hermetic_store::StoreError;
use hermetic_types::{Platform, Timestamp};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};

use crate::Gateway;
use crate::message::AcceptedMessage;
use crate::message::Slash;

/// `session_reset` and `reset_triggers`.
#[derive(Clone, Debug, Default)]
pub struct Resets {
    /// Each day at this hour of the machine's own time.
    pub daily_at: Option<u8>,
    /// After so long without a word.
    pub idle: Option<Duration>,
    /// Where nothing is said about it.
    pub silent_on: Vec<Platform>,
    pub silent: bool,
    /// Words that do what `/new` does.
    pub triggers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Idle,
    Daily,
}

impl Gateway {
    /// Forgets what was said if its time is over; what the person is told about it.
    pub(crate) async fn reset_if_due(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Option<&'static str>, StoreError> {
        let resets = &self.settings.resets;
        // A turn that goes on after a crash is no new word.
        if message.was_begun() || (resets.daily_at.is_none() && resets.idle.is_none()) {
            return Ok(None);
        }
        let Some(last) = self.history.last_at(message.conversation()).await? else {
            return Ok(None);
        };
        let Some(why) = resets.is_over(last, &self.jiff_now().to_zoned(TimeZone::system())) else {
            return Ok(None);
        };
        if self.toolsets.background().holds_up(message.conversation()) {
            return Ok(None);
        }
        self.history.clear(message.conversation()).await?;
        self.approvals
            .questions
            .revoke(message.conversation())
            .await?;
        let quiet = resets.silent || resets.silent_on.contains(&message.said().platform());
        Ok((!quiet).then_some(why.told()))
    }

    /// The command that a message is, if it is one.
    pub(crate) fn slash(&self, message: &AcceptedMessage) -> Option<Slash> {
        let text = message.said().text.as_str();
        let slash = Slash::read(text);
        if slash.is_some() {
            return slash;
        }
        let mut triggers = self.settings.resets.triggers.iter();
        let is_trigger = triggers.any(|trigger| trigger.eq_ignore_ascii_case(text.trim()));
        is_trigger.then_some(Slash::New)
    }
}

impl Resets {
    fn is_over(&self, last: Timestamp, now: &Zoned) -> Option<Why> {
        let last = jiff::Timestamp::from_millisecond(last.millis()).ok()?;
        let silent = now.timestamp().duration_since(last);
        if self
            .idle
            .is_some_and(|idle| silent.unsigned_abs() >= idle && silent.is_positive())
        {
            return Some(Why::Idle);
        }
        let hour = i8::try_from(self.daily_at?).ok()?;
        let today = now
            .date()
            .at(hour, 0, 0, 0)
            .to_zoned(now.time_zone().clone())
            .ok()?;
        let latest = if today <= *now {
            today
        } else {
            today.checked_sub(1.day()).ok()?
        };
        (last.to_zoned(TimeZone::UTC) < latest).then_some(Why::Daily)
    }
}

impl Why {
    fn told(self) -> &'static str {
        match self {
            Self::Idle => {
                "[Nothing was said here for long, so I have forgotten what was. Files stay.]\n\n"
            }
            Self::Daily => "[A new day: I have forgotten what was said before. Files stay.]\n\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    fn said(text: &str) -> Timestamp {
        Timestamp::from_millis(at(text).timestamp().as_millisecond())
    }

    fn over(resets: &Resets, last: &str, now: &str) -> Option<Why> {
        resets.is_over(said(last), &at(now))
    }

    #[test]
    fn silence_for_long_enough_ends_it() {
        let resets = Resets {
            idle: Some(HOUR),
            ..Resets::default()
        };
        let last = "2024-05-05T12:00:00+00:00[+00:00]";
        assert_eq!(
            over(&resets, last, "2024-05-05T12:59:59+00:00[+00:00]"),
            None
        );
        assert_eq!(
            over(&resets, last, "2024-05-05T13:00:00+00:00[+00:00]"),
            Some(Why::Idle)
        );
        // A clock that was set back ends nothing.
        assert_eq!(
            over(&resets, last, "2024-05-05T09:00:00+00:00[+00:00]"),
            None
        );
    }

    #[test]
    fn a_day_ends_at_its_hour_where_the_machine_is() {
        let resets = Resets {
            daily_at: Some(4),
            ..Resets::default()
        };
        let last = "2024-05-05T23:30:00+02:00[+02:00]";
        assert_eq!(
            over(&resets, last, "2024-05-06T03:59:00+02:00[+02:00]"),
            None
        );
        assert_eq!(
            over(&resets, last, "2024-05-06T04:00:00+02:00[+02:00]"),
            Some(Why::Daily)
        );
        let early = "2024-05-06T04:10:00+02:00[+02:00]";
        assert_eq!(
            over(&resets, early, "2024-05-06T23:00:00+02:00[+02:00]"),
            None
        );
    }
}
