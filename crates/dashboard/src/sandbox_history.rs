//! How many sandboxes ran at once, hour by hour, for a day: counted each minute, kept in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::Timestamp;

/// The most of each hour, the latest last. Hours in which nothing was counted are not there.
#[derive(Debug, Default)]
pub(crate) struct SandboxHistory(Mutex<VecDeque<HourPeak>>);

#[derive(Clone, Copy, Debug)]
struct HourPeak {
    /// Since 1970.
    hour: i64,
    most: i64,
}

/// A sandbox that lives shorter may be missed.
pub(crate) const COUNT_INTERVAL: Duration = Duration::from_secs(60);

const HOURS: i64 = 24;

impl SandboxHistory {
    pub(crate) fn note(&self, now: Timestamp, running: i64) {
        let hour = hour_of(now);
        let mut peaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Also those that are ahead, where somebody set the clock back.
        peaks.retain(|peak| peak.hour > hour - HOURS && peak.hour <= hour);
        match peaks.back_mut().filter(|last| last.hour == hour) {
            Some(last) => last.most = last.most.max(running),
            None => peaks.push_back(HourPeak {
                hour,
                most: running,
            }),
        }
    }

    /// The last day, also the hours of which nothing is known, as none.
    pub(crate) fn hours(&self, now: Timestamp) -> Vec<i64> {
        let last = hour_of(now);
        let peaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |hour| peaks.iter().find(|peak| peak.hour == hour);
        let hours = (last - HOURS + 1)..=last;
        hours
            .map(|hour| of(hour).map_or(0, |peak| peak.most))
            .collect()
    }
}

fn hour_of(moment: Timestamp) -> i64 {
    moment.millis() / 3_600_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_each_hour_is_kept_for_a_day() {
        let history = SandboxHistory::default();
        let at = |hour: u64, minute: u64| {
            Timestamp::from_seconds(0).plus(Duration::from_secs(hour * 3600 + minute * 60))
        };
        for (hour, minute, running) in [(100, 1, 3), (100, 2, 7), (100, 59, 2), (102, 0, 4)] {
            history.note(at(hour, minute), running);
        }
        let hours = history.hours(at(102, 30));
        assert_eq!(hours.len(), 24);
        assert_eq!(hours[20..], [0, 7, 0, 4]);
        history.note(at(124, 0), 1);
        let hours = history.hours(at(124, 0));
        assert_eq!((hours[1], hours[23]), (4, 1), "the oldest is forgotten");
        assert_eq!(hours.iter().sum::<i64>(), 5);
        history.note(at(90, 0), 9);
        assert_eq!(history.hours(at(90, 0))[23], 9, "a clock that was set back");
        assert!(history.0.lock().unwrap().len() <= 24);
    }
}
