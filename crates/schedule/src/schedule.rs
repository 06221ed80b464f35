//! A schedule, as people write it and as a row keeps it.

use std::fmt;
use std::time::Duration;

use hermetic_types::Timestamp;
use jiff::tz::TimeZone;
use thiserror::Error;

use crate::phrase;
use crate::{CronExpression, InvalidCronExpression};

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    Once(Timestamp),
    /// Again and again after so long, counted from when it was made.
    Every(Duration),
    Cron(CronExpression),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidSchedule {
    #[error(
        "{text:?} is no schedule. Once: '30m', 'in 2h', '2026-02-03T14:00'. Again and again: 'every 30m', \
         'every monday 9am', 'weekdays at 9am', or a cron expression such as '0 9 * * 1-5'"
    )]
    Unknown { text: String },
    #[error("{text:?} is no cron expression: {source}")]
    Cron {
        text: String,
        source: InvalidCronExpression,
    },
    #[error("{text:?} is over already")]
    Over { text: String },
    #[error("{text:?} is no time of a calendar: {why}")]
    Time { text: String, why: String },
}

/// What is due again later than this is a mistake.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Moments that are looked at to find how close two of them are: more than an irregular expression has in a
/// day.
const LOOKED_AT: usize = 64;

impl Schedule {
    /// Reads what somebody wrote now. Times without an offset are meant in this zone.
    pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, InvalidSchedule> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let unknown = || InvalidSchedule::Unknown { text: shown(text) };
        // Weekdays are looked for first, with and without the word: `every monday 9am` begins like
        // a period, and read as one it would be refused.
        let every = lower.strip_prefix("every ").map(str::trim);
        if let Some(expression) = phrase::weekly(every.unwrap_or(&lower)) {
            return cron(&expression);
        }
        if let Some(rest) = every {
            let period = phrase::duration(rest).filter(|period| fits(*period));
            return period.map(Self::Every).ok_or_else(unknown);
        }
        // A duration alone is once, as in Hermes 0.19: what comes again and again costs, and says so.
        let once = lower.strip_prefix("in ").unwrap_or(&lower);
        if let Some(wait) = phrase::duration(once) {
            return match fits(wait) {
                true => Ok(Self::Once(now.plus(wait))),
                false => Err(unknown()),
            };
        }
        // Six fields and more go there too: cron's own words for what is wrong help more than a
        // list of examples.
        if lower.starts_with('@') || lower.split_whitespace().count() >= 5 {
            return cron(text);
        }
        // By its shape, so that `9am` and the like get the list of examples and not an error of a
        // calendar's parser. Bytes, for a slice could cut a letter of the person's in two.
        let is_date =
            lower.len() >= 10 && lower.as_bytes()[4] == b'-' && lower.as_bytes()[7] == b'-';
        match is_date {
            true => Self::at(text, now, zone),
            false => Err(unknown()),
        }
    }

    fn at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, InvalidSchedule> {
        let wrong = |error: jiff::Error| InvalidSchedule::Time {
            text: shown(text),
            why: error.to_string(),
        };
        // With an offset it is a moment whatever zone is configured; only what has none is read in
        // that zone.
        let at: Timestamp = match text.parse::<jiff::Timestamp>() {
            Ok(at) => at.into(),
            Err(_) => {
                let time: jiff::civil::DateTime = text.parse().map_err(wrong)?;
                let at = time.to_zoned(zone.clone()).map_err(wrong)?;
                at.timestamp().into()
            }
        };
        match at > now {
            true => Ok(Self::Once(at)),
            false => Err(InvalidSchedule::Over { text: shown(text) }),
        }
    }

    /// The first moment after `after`; `anchor` is when the schedule was made.
    pub fn next_after(
        &self,
        after: Timestamp,
        anchor: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        match self {
            Self::Once(at) => (*at > after).then_some(*at),
            Self::Every(period) => {
                let period = i64::try_from(period.as_millis())
                    .ok()
                    .filter(|period| *period > 0)?;
                // Nothing here may overflow: rows and clocks can hold anything, and one such row
                // must not end the ticker of all jobs.
                let passed = after.millis().saturating_sub(anchor.millis());
                // On a grid from the beginning, so that a late run does not move those after it.
                let count = passed.div_euclid(period).saturating_add(1).max(1);
                let at = anchor.millis().checked_add(count.checked_mul(period)?)?;
                Some(Timestamp::from_millis(at))
            }
            Self::Cron(expression) => expression.next_after(after, zone),
        }
    }

    /// How long there is between two moments at least, as far as can be seen; nothing for one that is once.
    pub fn shortest_gap(&self, from: Timestamp, zone: &TimeZone) -> Option<Duration> {
        match self {
            Self::Once(_) => None,
            Self::Every(period) => Some(*period),
            Self::Cron(_) => {
                let mut shortest = None;
                let mut last = self.next_after(from, from, zone)?;
                for _ in 0..LOOKED_AT {
                    let Some(next) = self.next_after(last, from, zone) else {
                        break;
                    };
                    let gap = next.since(last);
                    shortest = Some(shortest.map_or(gap, |shortest: Duration| shortest.min(gap)));
                    last = next;
                }
                shortest
            }
        }
    }

    pub fn is_once(&self) -> bool {
        matches!(self, Self::Once(_))
    }

    /// As a row keeps it.
    pub fn to_row(&self) -> String {
        match self {
            Self::Once(at) => format!("once {}", at.millis()),
            Self::Every(period) => format!("every {}", period.as_secs()),
            Self::Cron(expression) => format!("cron {expression}"),
        }
    }

    /// What [`to_row`](Self::to_row) wrote; `None` for anything else.
    pub fn of_row(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        Some(match kind {
            "once" => Self::Once(Timestamp::from_millis(rest.parse().ok()?)),
            "every" => {
                let period = Duration::from_secs(rest.parse().ok()?);
                Self::Every(Some(period).filter(|period| fits(*period))?)
            }
            "cron" => Self::Cron(CronExpression::parse(rest).ok()?),
            _ => return None,
        })
    }
}

/// In words that [`Schedule::parse`] understands.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(at) => write!(f, "{at}"),
            Self::Every(period) => {
                let minutes = period.as_secs() / 60;
                match minutes {
                    0 => write!(f, "every {} seconds", period.as_secs()),
                    _ if minutes % 1440 == 0 => write!(f, "every {}d", minutes / 1440),
                    _ if minutes % 60 == 0 => write!(f, "every {}h", minutes / 60),
                    _ => write!(f, "every {minutes}m"),
                }
            }
            Self::Cron(expression) => expression.fmt(f),
        }
    }
}

fn cron(text: &str) -> Result<Schedule, InvalidSchedule> {
    let read = CronExpression::parse(text).map(Schedule::Cron);
    read.map_err(|source| InvalidSchedule::Cron {
        text: shown(text),
        source,
    })
}

fn fits(period: Duration) -> bool {
    !period.is_zero() && period <= LONGEST
}

/// What somebody wrote may be anything.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
