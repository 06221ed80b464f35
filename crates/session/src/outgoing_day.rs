//! How many bytes left on a day: by a person, by a conversation, by all.
//!
//! Sums are in memory under one lock, and counted before a byte leaves, so that connections at once see each
//! other. They are written down every second and at the end; what left in the last second before a crash is
//! forgotten.

use std::collections::{BTreeSet, HashMap};
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
    /// What works beside which conversation: what leaves there leaves that one.
    #[serde(default)]
    beside: HashMap<String, String>,
    /// Whose bounds are twice what they were, until midnight.
    #[serde(default)]
    lifted: BTreeSet<OutgoingScope>,
}

/// Whose bytes are bounded together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingScope {
    Person(String),
    Conversation(String),
    All,
}

/// What left today, and how much may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingSum {
    pub bytes: u64,
    pub limit: u64,
}

/// What became of lifting a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingLift {
    Lifted,
    /// It was lifted before on this day.
    Already,
    /// Nothing left under that name today.
    Unknown,
    NotBounded,
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

    fn of(&self, scope: &OutgoingScope) -> Option<u64> {
        match scope {
            OutgoingScope::Person(_) => self.person,
            OutgoingScope::Conversation(_) => self.conversation,
            OutgoingScope::All => self.all,
        }
    }
}

impl DaySums {
    /// What left under a name, if it is known today.
    fn of(&self, scope: &OutgoingScope) -> Option<u64> {
        match scope {
            OutgoingScope::Person(name) => self.persons.get(name).copied(),
            OutgoingScope::Conversation(name) => self.conversations.get(name).copied(),
            OutgoingScope::All => Some(self.all),
        }
    }

    /// A bound as it is today.
    fn bound(&self, limit: u64, scope: &OutgoingScope) -> u64 {
        match self.lifted.contains(scope) {
            true => limit.saturating_mul(2),
            false => limit,
        }
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

    /// From now on what leaves from `work` leaves from this conversation: a sandbox beside it has no bytes of its
    /// own.
    pub fn begin_beside(&self, conversation: &ConversationKey, work: &ConversationKey) {
        let mut state = self.state();
        let beside = &mut state.sums.beside;
        if beside.len() >= MOST_NAMES {
            // Only those that were cut off by a crash stay here. What is at work now counts for itself then.
            beside.clear();
        }
        beside.insert(work.as_str().to_owned(), conversation.as_str().to_owned());
        state.is_changed = true;
    }

    /// The sandbox of `work` is gone.
    pub fn end_beside(&self, work: &ConversationKey) {
        let mut state = self.state();
        state.is_changed |= state.sums.beside.remove(work.as_str()).is_some();
    }

    /// What left today; nothing where that is not bounded.
    pub fn sum(&self, scope: &OutgoingScope) -> Option<OutgoingSum> {
        let limit = self.limits.of(scope)?;
        let state = self.today();
        Some(OutgoingSum {
            bytes: state.sums.of(scope).unwrap_or_default(),
            limit: state.sums.bound(limit, scope),
        })
    }

    /// Doubles a bound until midnight, once.
    pub fn lift(&self, scope: &OutgoingScope) -> OutgoingLift {
        if self.limits.of(scope).is_none() {
            return OutgoingLift::NotBounded;
        }
        let mut state = self.today();
        // A name that was mistyped would be told to be lifted, and nothing would be.
        if state.sums.of(scope).is_none() {
            return OutgoingLift::Unknown;
        }
        match state.sums.lifted.insert(scope.clone()) {
            true => {
                state.is_changed = true;
                OutgoingLift::Lifted
            }
            false => OutgoingLift::Already,
        }
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
                let beside = std::mem::take(&mut state.sums.beside);
                state.sums = DaySums {
                    date,
                    speakers,
                    beside,
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
        let counted_as = sums.beside.get(conversation.as_str()).cloned();
        let conversation = counted_as.unwrap_or_else(|| conversation.as_str().to_owned());
        let person = sums.speakers.get(&conversation).cloned();
        let person = person.unwrap_or_else(|| OTHERS.to_owned());
        let scopes = [
            (
                OutgoingScope::Conversation(conversation.clone()),
                BudgetScope::Conversation,
            ),
            (OutgoingScope::Person(person.clone()), BudgetScope::Person),
            (OutgoingScope::All, BudgetScope::All),
        ];
        let bounds = scopes.map(|(scope, told)| {
            let limit = self.limits.of(&scope);
            (limit.map(|limit| sums.bound(limit, &scope)), told)
        });
        let own = slot(&mut sums.conversations, &conversation);
        let theirs = slot(&mut sums.persons, &person);
        let counted = [*own, *theirs, sums.all];
        // All bounds before any sum is changed: a byte that one of them refuses must not be counted
        // by the others.
        for (sum, (budget, scope)) in counted.into_iter().zip(bounds) {
            let Some(budget) = budget else { continue };
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
