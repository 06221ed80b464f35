//! Cron expressions of five fields, and the moments they mean.
//!
//! Written by ourselves because it is small and because what happens on the days on which clocks change is
//! a promise: a time that does not exist on such a day is due when the clock has jumped over it, a time
//! that comes twice is due once, and an expression for every hour goes by the hours that pass.

use std::fmt;

use hermetic_types::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{ToSpan as _, Zoned};
use thiserror::Error;

/// An expression whose every field is in its range, and that is due at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronExpression {
    text: String,
    minutes: BitSet,
    hours: BitSet,
    days: BitSet,
    months: BitSet,
    weekdays: BitSet,
    /// A day is meant by its number or by its weekday; where only one of them is written, by that.
    any_day: bool,
    any_weekday: bool,
}

/// Numbers below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BitSet(u64);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidCronExpression {
    #[error("a cron expression has five fields: minute, hour, day, month, weekday; this has {0}")]
    FieldCount(usize),
    #[error("{part:?} is no {field}: expected {least} to {most}, lists, ranges and steps of them")]
    Field {
        part: String,
        field: &'static str,
        least: u8,
        most: u8,
    },
    #[error("there is no such day")]
    Never,
    #[error("a cron expression has at most {MOST_CHARACTERS} characters")]
    TooLong,
}

const MOST_CHARACTERS: usize = 200;

/// Days that are looked through for the next one: 29 February comes again after at most eight years.
const MOST_DAYS: usize = 366 * 9;

/// Short names of expressions, as cron has them.
const SHORTHANDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five.
struct FieldRange {
    name: &'static str,
    least: u8,
    most: u8,
    /// Words for its numbers, the first of which stands for `least`.
    words: &'static [&'static str],
}

const MINUTE: FieldRange = range("minute", 0, 59, &[]);
const HOUR: FieldRange = range("hour", 0, 23, &[]);
const DAY: FieldRange = range("day of a month", 1, 31, &[]);
const MONTH: FieldRange = range("month", 1, 12, &MONTHS);
/// Sunday is 0, and 7 at the end of a range.
const WEEKDAY: FieldRange = range("weekday", 0, 7, &WEEKDAYS);

const fn range(
    name: &'static str,
    least: u8,
    most: u8,
    words: &'static [&'static str],
) -> FieldRange {
    FieldRange {
        name,
        least,
        most,
        words,
    }
}

impl CronExpression {
    pub fn parse(text: &str) -> Result<Self, InvalidCronExpression> {
        // Before it is taken apart: a list of a megabyte would be kept with the row and shown in
        // every listing.
        if text.chars().count() > MOST_CHARACTERS {
            return Err(InvalidCronExpression::TooLong);
        }
        let lower = text.trim().to_ascii_lowercase();
        let spelt = SHORTHANDS.iter().find(|(short, _)| *short == lower);
        let spelt = spelt.map_or(lower.as_str(), |(_, long)| long);
        let fields: Vec<_> = spelt.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(InvalidCronExpression::FieldCount(fields.len()));
        };
        let mut weekdays = WEEKDAY.read(weekday)?;
        if weekdays.has(7) {
            weekdays.add(0);
        }
        let read = Self {
            text: fields.join(" "),
            minutes: MINUTE.read(minute)?,
            hours: HOUR.read(hour)?,
            days: DAY.read(day)?,
            months: MONTH.read(month)?,
            weekdays,
            // By how it is written and not by which days are in it: `1-31` with a weekday means
            // either of them to cron, and `*` means the weekday alone.
            any_day: day == "*",
            any_weekday: weekday == "*",
        };
        match read.is_ever_due() {
            true => Ok(read),
            false => Err(InvalidCronExpression::Never),
        }
    }

    /// The first moment after `after` at which it is due. `None` only at the end of the calendar.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let after = after.calendar();
        let here = after.to_zoned(zone.clone());
        match self.is_hourly() {
            true => self.next_of_passing_hours(&here),
            false => self.next_of_the_day(&here),
        }
    }

    /// Written for every hour, so that the hours which pass are meant and not those on the clock.
    fn is_hourly(&self) -> bool {
        (0..24).all(|hour| self.hours.has(hour))
    }

    /// From minute to minute of real time: an hour that comes twice is counted twice, one that is skipped is
    /// not there.
    fn next_of_passing_hours(&self, after: &Zoned) -> Option<Timestamp> {
        let mut at = next_minute(after)?;
        let mut days = 0;
        loop {
            // By whole days where the day is not meant: minutes of the years until a 29 February
            // would be millions of steps.
            if !self.is_on(at.date()) {
                days += 1;
                if days > MOST_DAYS {
                    return None;
                }
                at = at.tomorrow().ok()?.start_of_day().ok()?;
            } else if self.minutes.has(at.minute().unsigned_abs()) {
                return Some(at.timestamp().into());
            } else {
                at = next_minute(&at)?;
            }
        }
    }

    /// By the clock on the wall. The times of a day never go back: one that is skipped is due at the end of
    /// the gap, one that comes twice at its first coming.
    fn next_of_the_day(&self, after: &Zoned) -> Option<Timestamp> {
        let mut date = after.date();
        for _ in 0..MOST_DAYS {
            if self.is_on(date) {
                let mut moments = self.moments_on(date, after.time_zone());
                if let Some(at) = moments.find(|at| *at > after.timestamp()) {
                    return Some(at.into());
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn moments_on<'a>(
        &'a self,
        date: Date,
        zone: &'a TimeZone,
    ) -> impl Iterator<Item = jiff::Timestamp> + 'a {
        let hours = (0..24).filter(|hour| self.hours.has(*hour));
        let times = hours.flat_map(|hour| {
            let minutes = (0..60).filter(|minute| self.minutes.has(*minute));
            minutes.filter_map(move |minute| {
                let (hour, minute) = (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?);
                Time::new(hour, minute, 0, 0).ok()
            })
        });
        times.filter_map(move |time| {
            let ambiguous = zone.to_ambiguous_timestamp(date.to_datetime(time));
            match ambiguous.offset() {
                AmbiguousOffset::Gap { .. } => {
                    // The last moment before the gap is followed by the first one after it.
                    let earlier = ambiguous.earlier().ok()?;
                    let change = zone.following(earlier).next()?;
                    Some(change.timestamp())
                }
                AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
                    ambiguous.earlier().ok()
                }
            }
        })
    }

    fn is_on(&self, date: Date) -> bool {
        let by_number = self.days.has(date.day().unsigned_abs());
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let by_weekday = self.weekdays.has(weekday);
        let day = match (self.any_day, self.any_weekday) {
            // Cron's own oddity, which people rely on: with both fields written, one of them is
            // enough.
            (false, false) => by_number || by_weekday,
            _ => by_number && by_weekday,
        };
        day && self.months.has(date.month().unsigned_abs())
    }

    fn is_ever_due(&self) -> bool {
        // A leap year has all days of all months, and every month has all weekdays.
        let in_month = |month: u8| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let by_weekday = !self.any_weekday && !self.any_day;
        let mut months = (1..=12).filter(|month| self.months.has(*month));
        months.any(|month| by_weekday || (1..=in_month(month)).any(|day| self.days.has(day)))
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FieldRange {
    fn read(&self, text: &str) -> Result<BitSet, InvalidCronExpression> {
        let mut set = BitSet::default();
        for part in text.split(',') {
            self.read_part(part, &mut set)
                .ok_or_else(|| InvalidCronExpression::Field {
                    part: part.chars().take(40).collect(),
                    field: self.name,
                    least: self.least,
                    most: self.most,
                })?;
        }
        Ok(set)
    }

    /// `*`, `5`, `1-5`, each with a step behind it: `*/15`. A number with a step goes to the end.
    fn read_part(&self, part: &str, set: &mut BitSet) -> Option<()> {
        // `step_by` panics with a step of zero.
        let (which, step) = match part.split_once('/') {
            Some((which, step)) => (
                which,
                Some(step.parse::<u8>().ok().filter(|step| *step > 0)?),
            ),
            None => (part, None),
        };
        let (first, last) = match which.split_once('-') {
            _ if which == "*" => (self.least, self.last_of_all()),
            Some((first, last)) => {
                let (first, mut last) = (self.number(first)?, self.number(last)?);
                if self.most == WEEKDAY.most && last == 0 && first > 0 {
                    last = 7;
                }
                (first, last)
            }
            None => {
                let first = self.number(which)?;
                (
                    first,
                    if step.is_some() {
                        self.last_of_all()
                    } else {
                        first
                    },
                )
            }
        };
        if first > last {
            return None;
        }
        (first..=last)
            .step_by(usize::from(step.unwrap_or(1)))
            .for_each(|number| set.add(number));
        Some(())
    }

    /// The second name of Sunday is none of its own.
    fn last_of_all(&self) -> u8 {
        match self.most == WEEKDAY.most {
            true => 6,
            false => self.most,
        }
    }

    fn number(&self, text: &str) -> Option<u8> {
        let word = self.words.iter().position(|word| *word == text);
        let number = match word {
            Some(place) => u8::try_from(place).ok()? + self.least,
            // Only digits: `+5` is read as a number by the library and by no cron.
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }
}

impl BitSet {
    fn add(&mut self, number: u8) {
        self.0 |= 1_u64.checked_shl(number.into()).unwrap_or(0);
    }

    fn has(self, number: u8) -> bool {
        self.0 & 1_u64.checked_shl(number.into()).unwrap_or(0) != 0
    }
}

fn next_minute(at: &Zoned) -> Option<Zoned> {
    // On the seconds of the epoch and not on the clock on the wall, so that the hour which comes
    // twice is walked through twice.
    let seconds = at.timestamp().as_second().div_euclid(60) * 60 + 60;
    let next = jiff::Timestamp::from_second(seconds).ok()?;
    Some(next.to_zoned(at.time_zone().clone()))
}

#[cfg(test)]
#[path = "cron_expression_tests.rs"]
mod tests;
