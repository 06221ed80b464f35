//! How many rooms strangers may open to us in a day, to ask to be let in.
//!
//! Each is a room that this account is in from then on, so there is a bound; and it is one of a day, so
//! that nobody shuts the door for good by filling it. One person cannot fill it alone.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// People in a day.
const MOST_STRANGERS: usize = 100;
/// Rooms of one of them in a day.
const MOST_ROOMS: u32 = 3;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StrangerRooms {
    /// When the day began, in milliseconds of Unix time.
    since: i64,
    rooms: BTreeMap<String, u32>,
}

impl StrangerRooms {
    /// As it was kept. What an earlier version kept was a number, of which nothing says when.
    pub(crate) fn read(kept: Option<String>) -> Self {
        let read = kept.and_then(|kept| serde_json::from_str(&kept).ok());
        read.unwrap_or_default()
    }

    pub(crate) fn kept(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Counts a room of this person's, if there may be one more.
    pub(crate) fn admit(&mut self, inviter: &str, now: Timestamp) -> bool {
        let since = Timestamp::from_millis(self.since);
        // A clock that was ahead must not keep the day from ending.
        if now.since(since) >= DAY || since > now {
            *self = Self {
                since: now.millis(),
                rooms: BTreeMap::new(),
            };
        }
        let is_known = self.rooms.contains_key(inviter);
        if !is_known && self.rooms.len() >= MOST_STRANGERS {
            return false;
        }
        let rooms = self.rooms.entry(inviter.to_owned()).or_default();
        *rooms += 1;
        *rooms <= MOST_ROOMS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_fill_a_day_and_no_more_and_none_of_them_alone() {
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        // As an earlier version left it, with the door shut.
        let mut rooms = StrangerRooms::read(Some("100".to_owned()));
        let insists = (0..1000).filter(|_| rooms.admit("@mallory:a", now));
        assert_eq!(insists.count(), 3);
        assert!(rooms.admit("@alice:a", now));
        let crowd = (0..1000).filter(|number| rooms.admit(&format!("@{number}:a"), now));
        assert_eq!(crowd.count(), 98);
        let mut rooms = StrangerRooms::read(Some(rooms.kept()));
        assert!(!rooms.admit("@bob:a", now), "a restart changes nothing");
        assert!(rooms.admit("@bob:a", now.plus(DAY)));
        assert!(rooms.admit("@mallory:a", now.plus(DAY)));
        assert!(rooms.admit("@bob:a", now), "a clock that was set back");
    }
}
