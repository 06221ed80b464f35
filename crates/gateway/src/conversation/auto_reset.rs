//! When a conversation starts afresh by itself.

use std::time::Duration;

use hermetic_store::StoreError;
use hermetic_types::{Platform, Timestamp};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};

use crate::Gateway;
use crate::message::AcceptedMessage;
use crate::message::ChatCommand;

/// `session_reset` and `reset_triggers`.
#[derive(Clone, Debug, Default)]
pub struct ResetSettings {
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
enum ResetReason {
    Idle,
    Daily,
}

impl Gateway {
    /// Puts away what was said if its time is over; what the person is told about it.
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
        let Some(why) = resets.is_over(last, &self.now().calendar().to_zoned(TimeZone::system()))
        else {
            return Ok(None);
        };
        // What a process has to tell later is meant for whoever knows why it was started. Bounded
        // by how long a process may hold up anything, or a server left running would keep the
        // conversation for good.
        if self.toolsets.background().holds_up(message.conversation()) {
            return Ok(None);
        }
        self.begin_anew(message.conversation()).await?;
        let quiet = resets.silent || resets.silent_on.contains(&message.said().platform());
        Ok((!quiet).then_some(why.told()))
    }

    /// The command that a message is, if it is one.
    pub(crate) fn slash(&self, message: &AcceptedMessage) -> Option<ChatCommand> {
        // What a job is told was written before, and commands are for who is there.
        if message.is_scheduled() {
            return None;
        }
        let text = message.said().text.as_str();
        let slash = ChatCommand::read(text);
        if slash.is_some() {
            return slash;
        }
        let mut triggers = self.settings.resets.triggers.iter();
        let is_trigger = triggers.any(|trigger| trigger.eq_ignore_ascii_case(text.trim()));
        is_trigger
            .then_some(ChatCommand::New)
            .or_else(|| ChatCommand::unknown(text))
            .filter(|slash| !self.is_skill(slash))
    }
}

impl ResetSettings {
    fn is_over(&self, last: Timestamp, now: &Zoned) -> Option<ResetReason> {
        let at = Timestamp::from(now.timestamp());
        // What was said ahead of us was said before the clock was set back.
        if last >= at {
            return None;
        }
        if self.idle.is_some_and(|idle| at.since(last) >= idle) {
            return Some(ResetReason::Idle);
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
        (last < latest.timestamp().into()).then_some(ResetReason::Daily)
    }
}

impl ResetReason {
    fn told(self) -> &'static str {
        match self {
            Self::Idle => {
                "[Nothing was said here for long, so I start afresh. Files stay, and /sessions has what was said.]\n\n"
            }
            Self::Daily => {
                "[A new day: I start afresh. Files stay, and /sessions has what was said.]\n\n"
            }
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
        at(text).timestamp().into()
    }

    fn over(resets: &ResetSettings, last: &str, now: &str) -> Option<ResetReason> {
        resets.is_over(said(last), &at(now))
    }

    #[test]
    fn silence_for_long_enough_ends_it() {
        let resets = ResetSettings {
            idle: Some(HOUR),
            ..ResetSettings::default()
        };
        let last = "2024-05-05T12:00:00+00:00[+00:00]";
        assert_eq!(
            over(&resets, last, "2024-05-05T12:59:59+00:00[+00:00]"),
            None
        );
        assert_eq!(
            over(&resets, last, "2024-05-05T13:00:00+00:00[+00:00]"),
            Some(ResetReason::Idle)
        );
        // A clock that was set back ends nothing.
        assert_eq!(
            over(&resets, last, "2024-05-05T09:00:00+00:00[+00:00]"),
            None
        );
    }

    #[test]
    fn a_day_ends_at_its_hour_where_the_machine_is() {
        let resets = ResetSettings {
            daily_at: Some(4),
            ..ResetSettings::default()
        };
        let last = "2024-05-05T23:30:00+02:00[+02:00]";
        assert_eq!(
            over(&resets, last, "2024-05-06T03:59:00+02:00[+02:00]"),
            None
        );
        assert_eq!(
            over(&resets, last, "2024-05-06T04:00:00+02:00[+02:00]"),
            Some(ResetReason::Daily)
        );
        let early = "2024-05-06T04:10:00+02:00[+02:00]";
        assert_eq!(
            over(&resets, early, "2024-05-06T23:00:00+02:00[+02:00]"),
            None
        );
    }
}
