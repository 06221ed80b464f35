//! What becomes of a moment that nobody was there for.
//!
//! As in Hermes: a run that is late by less than half of its period (at least two minutes, at most two
//! hours) is made up for, once; one that is later is not, and is said to be missed. What was to happen only
//! once is late for a day, because there is no next time.

use std::time::Duration;

use hermetic_types::Timestamp;
use jiff::tz::TimeZone;

use crate::Schedule;

/// How a moment stands that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    OnTime,
    /// It is still worth a run, which says so.
    Late,
    /// It is not run.
    Missed,
}

/// Up to here nobody speaks of it.
const ON_TIME: Duration = Duration::from_secs(60);
const LEAST_GRACE: Duration = Duration::from_secs(120);
const MOST_GRACE: Duration = Duration::from_secs(7200);
const GRACE_OF_ONCE: Duration = Duration::from_secs(24 * 3600);

/// How `due`, which is not after `now`, stands.
pub fn lateness(
    schedule: &Schedule,
    due: Timestamp,
    now: Timestamp,
    anchor: Timestamp,
    zone: &TimeZone,
) -> Lateness {
    let late = now.since(due);
    if late <= ON_TIME {
        return Lateness::OnTime;
    }
    let grace = match schedule {
        Schedule::Once(_) => GRACE_OF_ONCE,
        Schedule::Every(_) | Schedule::Cron(_) => {
            // From the moment that was due, not from now: an irregular expression has another gap
            // at each place.
            let next = schedule.next_after(due, anchor, zone);
            let period = next.map_or(MOST_GRACE, |next| next.since(due));
            (period / 2).clamp(LEAST_GRACE, MOST_GRACE)
        }
    };
    match late <= grace {
        true => Lateness::Late,
        false => Lateness::Missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH.plus(Duration::from_secs(minutes * 60))
    }

    fn stands(schedule: &Schedule, late_minutes: u64) -> Lateness {
        let due = at(1440);
        lateness(
            schedule,
            due,
            at(1440 + late_minutes),
            at(0),
            &TimeZone::UTC,
        )
    }

    #[test]
    fn half_a_period_late_is_made_up_for() {
        let hourly = Schedule::Every(Duration::from_secs(3600));
        assert_eq!(stands(&hourly, 1), Lateness::OnTime);
        assert_eq!(stands(&hourly, 30), Lateness::Late);
        assert_eq!(stands(&hourly, 31), Lateness::Missed);
        let often = Schedule::Every(Duration::from_secs(60));
        assert_eq!(stands(&often, 2), Lateness::Late);
        assert_eq!(stands(&often, 3), Lateness::Missed);
        let daily = Schedule::Every(Duration::from_secs(86_400));
        assert_eq!(stands(&daily, 120), Lateness::Late);
        assert_eq!(stands(&daily, 121), Lateness::Missed);
        let once = Schedule::Once(at(1440));
        assert_eq!(stands(&once, 1440), Lateness::Late);
        assert_eq!(stands(&once, 1441), Lateness::Missed);
    }
}
