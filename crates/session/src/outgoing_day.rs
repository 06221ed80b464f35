//! How many bytes left on a day: by a person, by a conversation, by all.
//!
//! Sums are in memory under one lock, and counted before a byte leaves, so that connections at once see each
//! other. They are written down every second and at the end; what left in the last second before a crash is
//! forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_egress::{BudgetScope, BudgetSpent, OutgoingBudget};
use hermetic_store::{DocumentRows, StoreError};
use hermetic_types::{ConversationKey, SharedClock, Timestamp};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// Bytes that may leave on one day. Nothing is bounded unless somebody wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingLimits {
    pub person: Option<u64>,
    pub conversation: Option<u64>,
    pub all: Option<u64>,
}

/// The sums of the day, against their bounds.
#[derive(Debug)]
pub struct OutgoingDay {
    rows: DocumentRows,
    limits: OutgoingLimits,
    clock: SharedClock,
    state: Mutex<DayState>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DaySums {
    date: String,
    all: u64,
    conversations: HashMap<String, u64>,
    persons: HashMap<String, u64>,
    /// Who spoke last in which conversation: what leaves there is theirs.
    speakers: HashMap<String, String>,
}

#[derive(Debug, Default)]
struct DayState {
    sums: DaySums,
    /// The first moment of the next day.
    ends: Option<Timestamp>,
    is_changed: bool,
}

const DOCUMENT: &str = "egress-day";
/// Conversations and people that are told apart. Who comes after them shares one sum.
const MOST_NAMES: usize = 10_000;
const OTHERS: &str = "others";

impl OutgoingLimits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl OutgoingDay {
    /// Goes on from what left today before.
    pub async fn load(
        rows: DocumentRows,
        limits: OutgoingLimits,
        clock: SharedClock,
    ) -> Result<Self, StoreError> {
        let stored = rows.load(DOCUMENT).await?;
        let sums = stored.and_then(|stored| serde_json::from_str(&stored.body).ok());
        let state = DayState {
            sums: sums.unwrap_or_default(),
            ..DayState::default()
        };
        Ok(Self {
            rows,
            limits,
            clock,
            state: Mutex::new(state),
        })
    }

    /// From now on what leaves there is this person's.
    pub fn note_speaker(&self, conversation: &ConversationKey, person: &str) {
        let mut state = self.state();
        let speakers = &mut state.sums.speakers;
        if speakers.len() >= MOST_NAMES && !speakers.contains_key(conversation.as_str()) {
            // Who spoke last is only a guess at whose bytes they are. Forgotten, they count as
            // everybody else's until somebody speaks again.
            speakers.clear();
        }
        let known = speakers.insert(conversation.as_str().to_owned(), person.to_owned());
        state.is_changed |= known.as_deref() != Some(person);
    }

    /// Writes the sums down, if they changed.
    pub async fn save(&self) {
        let text = {
            let mut state = self.state();
            if !std::mem::take(&mut state.is_changed) {
                return;
            }
            serde_json::to_string(&state.sums).unwrap_or_default()
        };
        if let Err(error) = self.rows.put(DOCUMENT, &text).await {
            tracing::error!(%error, "what left today could not be written down");
            // Tried again with the next look. What was added meanwhile is in the sums already.
            self.state().is_changed = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, DayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums of today.
    fn today(&self) -> MutexGuard<'_, DayState> {
        let mut state = self.state();
        let now = self.clock.now();
        if state.ends.is_none_or(|ends| now >= ends) {
            let here = now.calendar().to_zoned(TimeZone::system());
            let date = here.date().to_string();
            // Where the calendar ends, the day is looked up each time.
            let next = here.date().tomorrow().ok();
            let next = next.and_then(|next| next.to_zoned(TimeZone::system()).ok());
            state.ends = next.map(|next| next.timestamp().into());
            if state.sums.date != date {
                // Sums begin anew at midnight; whose a conversation is does not change by that.
                let speakers = std::mem::take(&mut state.sums.speakers);
                state.sums = DaySums {
                    date,
                    speakers,
                    ..DaySums::default()
                };
                state.is_changed = true;
            }
        }
        state
    }

    /// Adds `bytes` to all sums of a conversation, or to none.
    fn add(&self, conversation: &ConversationKey, bytes: u64) -> Result<(), BudgetSpent> {
        let mut state = self.today();
        let sums = &mut state.sums;
        let person = sums.speakers.get(conversation.as_str()).cloned();
        let person = person.unwrap_or_else(|| OTHERS.to_owned());
        let own = slot(&mut sums.conversations, conversation.as_str());
        let theirs = slot(&mut sums.persons, &person);
        let counted = [
            (*own, self.limits.conversation, BudgetScope::Conversation),
            (*theirs, self.limits.person, BudgetScope::Person),
            (sums.all, self.limits.all, BudgetScope::All),
        ];
        // All bounds before any sum is changed: a byte that one of them refuses must not be counted
        // by the others.
        for (sum, limit, scope) in counted {
            let Some(budget) = limit else { continue };
            // With nothing to add it is asked whether there is room at all.
            let wanted = sum.saturating_add(bytes.max(1));
            if wanted > budget {
                return Err(BudgetSpent { budget, scope });
            }
        }
        *own += bytes;
        *theirs += bytes;
        sums.all += bytes;
        state.is_changed |= bytes > 0;
        Ok(())
    }
}

impl OutgoingBudget for OutgoingDay {
    fn spend(&self, conversation: &ConversationKey, bytes: u64) -> Result<(), BudgetSpent> {
        match bytes {
            0 => Ok(()),
            bytes => self.add(conversation, bytes),
        }
    }

    fn check(&self, conversation: &ConversationKey) -> Result<(), BudgetSpent> {
        self.add(conversation, 0)
    }
}

fn slot<'a>(sums: &'a mut HashMap<String, u64>, name: &str) -> &'a mut u64 {
    let name = match sums.len() >= MOST_NAMES && !sums.contains_key(name) {
        true => OTHERS,
        false => name,
    };
    sums.entry(name.to_owned()).or_default()
}

#[cfg(test)]
#[path = "outgoing_day_tests.rs"]
mod tests;
