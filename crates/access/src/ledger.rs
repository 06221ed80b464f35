//! The rules of pairing, as plain functions of what is remembered and the time.
//!
//! Each stranger has one place among the pending, and only their own next request replaces it. The
//! places are many and the oldest gives way, so a few strangers cannot shut the door on others.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::{AccountId, ChatPlace, Timestamp, UserId, rfc3339};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::PairingCode;
use crate::code::CodeHash;

const CODE_LIVES: Duration = Duration::from_secs(3600);
const BETWEEN_REQUESTS: Duration = Duration::from_secs(600);
const LOCKOUT: Duration = Duration::from_secs(3600);
const FAILURES_UNTIL_LOCKOUT: u32 = 5;
/// Bounds the ledger, not a person: reaching it takes as many accounts within one hour.
const PENDING: usize = 1000;
const DISPLAY_CHARS: usize = 64;

/// Who is paired on one platform, who waits, and how often somebody guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingLedger {
    approved: BTreeMap<UserId, PairedUser>,
    pending: BTreeMap<UserId, WaitingCode>,
    failures: u32,
    #[serde(default, with = "rfc3339::option")]
    last_failure: Option<Timestamp>,
    #[serde(default, with = "rfc3339::option")]
    locked_until: Option<Timestamp>,
}

/// Somebody an operator let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedUser {
    pub user: UserId,
    pub display: String,
    #[serde(with = "rfc3339")]
    pub approved_at: Timestamp,
    #[serde(default)]
    pub role: PairedRole,
    /// Where they wait to be told that they are in; nothing once that is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<PairingPlace>,
}

/// What a code made of somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairedRole {
    #[default]
    User,
    /// May approve, as if the configuration had named them.
    Operator,
}

/// Where somebody asked to be let in, and where the answer goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingPlace {
    pub account: AccountId,
    pub place: ChatPlace,
}

/// Somebody who holds a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPairing {
    pub user: UserId,
    pub display: String,
    #[serde(with = "rfc3339")]
    pub requested_at: Timestamp,
    #[serde(with = "rfc3339")]
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WaitingCode {
    #[serde(flatten)]
    who: PendingPairing,
    hash: CodeHash,
    /// Absent in what an earlier version wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<PairingPlace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairingRequested {
    Noted,
    TooSoon,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ApproveError {
    #[error("no pending request has this code; {left} more wrong codes lock pairing for an hour")]
    NoSuchCode { left: u32 },
    #[error("too many wrong codes; pairing is locked until {until}")]
    Locked { until: Timestamp },
}

impl PairingLedger {
    pub(crate) fn knows(&self, user: &UserId) -> bool {
        self.approved.contains_key(user)
    }

    pub(crate) fn role_of(&self, user: &UserId) -> Option<PairedRole> {
        self.approved.get(user).map(|paired| paired.role)
    }

    /// Tells whether nobody was let in yet.
    pub(crate) fn is_new(&self) -> bool {
        self.approved.is_empty()
    }

    /// Those who are in and were not told.
    pub(crate) fn untold(&self) -> Vec<PairedUser> {
        let all = self.approved.values();
        all.filter(|paired| paired.untold.is_some())
            .cloned()
            .collect()
    }

    pub(crate) fn note_told(&mut self, user: &UserId) {
        if let Some(paired) = self.approved.get_mut(user) {
            paired.untold = None;
        }
    }

    /// Whether a request now would be turned away.
    pub(crate) fn is_too_soon(&self, user: &UserId, now: Timestamp) -> bool {
        self.pending.get(user).is_some_and(|waiting| {
            let asked = waiting.who.requested_at;
            // A request from the future is a clock that was put back: it counts for nothing.
            asked <= now && now.since(asked) < BETWEEN_REQUESTS
        })
    }

    pub(crate) fn request(
        &mut self,
        user: &UserId,
        display: &str,
        (hash, place): (CodeHash, PairingPlace),
        now: Timestamp,
    ) -> PairingRequested {
        if self.is_too_soon(user, now) {
            return PairingRequested::TooSoon;
        }
        // Room is made by what has expired before anybody who still waits gives way.
        self.forget_expired(now);
        self.pending.remove(user);
        while self.pending.len() >= PENDING {
            self.evict_oldest();
        }
        let who = PendingPairing {
            user: user.clone(),
            display: legible(display),
            requested_at: now,
            expires_at: now.plus(CODE_LIVES),
        };
        let place = Some(place);
        self.pending
            .insert(user.clone(), WaitingCode { who, hash, place });
        PairingRequested::Noted
    }

    /// Lets the holder of a code in. A code works once. `None` stands for text that cannot be one,
    /// which is a wrong guess like any other.
    pub(crate) fn approve(
        &mut self,
        code: Option<&PairingCode>,
        role: PairedRole,
        now: Timestamp,
    ) -> Result<PairedUser, ApproveError> {
        // A lock that was made by a clock far ahead would hold for as long as that clock was wrong.
        self.locked_until = self.locked_until.map(|until| until.min(now.plus(LOCKOUT)));
        if let Some(until) = self.locked_until.filter(|until| now < *until) {
            return Err(ApproveError::Locked { until });
        }
        // Before the code is looked for, or one that has run out would open.
        self.forget_expired(now);
        let Some(user) = code.and_then(|code| self.holder(code)) else {
            return Err(self.note_failure(now));
        };
        let Some(waiting) = self.pending.remove(&user) else {
            return Err(self.note_failure(now));
        };
        self.failures = 0;
        self.locked_until = None;
        let approved = PairedUser {
            user: user.clone(),
            display: waiting.who.display,
            approved_at: now,
            role,
            // Greeted by the gateway, not by the command line that approves: only the gateway can
            // write in a chat.
            untold: waiting.place,
        };
        self.approved.insert(user, approved.clone());
        Ok(approved)
    }

    /// Lets in people whom the operator let in elsewhere; those who were not in already.
    pub(crate) fn adopt(&mut self, people: &[PairedUser]) -> Vec<PairedUser> {
        let mut adopted = Vec::new();
        for person in people {
            if self.knows(&person.user) {
                continue;
            }
            let person = PairedUser {
                display: legible(&person.display),
                // Nobody becomes more by having been let in elsewhere.
                role: PairedRole::User,
                untold: None,
                ..person.clone()
            };
            // The code they may still hold is void: it would make them more, or again, later.
            self.pending.remove(&person.user);
            self.approved.insert(person.user.clone(), person.clone());
            adopted.push(person);
        }
        adopted
    }

    pub(crate) fn revoke(&mut self, user: &UserId) -> bool {
        // Both: a code that was asked for before would bring back whoever was just put out.
        self.pending.remove(user);
        self.approved.remove(user).is_some()
    }

    pub(crate) fn clear_pending(&mut self) -> usize {
        let cleared = self.pending.len();
        self.pending.clear();
        cleared
    }

    pub(crate) fn approved(&self) -> Vec<PairedUser> {
        self.approved.values().cloned().collect()
    }

    pub(crate) fn pending(&self, now: Timestamp) -> Vec<PendingPairing> {
        let mut pending: Vec<_> = self
            .pending
            .values()
            .filter(|waiting| waiting.who.holds_at(now))
            .map(|waiting| waiting.who.clone())
            .collect();
        pending.sort_by_key(|who| who.requested_at);
        pending
    }

    /// Looks at every hash, so that the time taken says nothing about which one fits.
    fn holder(&self, code: &PairingCode) -> Option<UserId> {
        self.pending
            .values()
            .fold(None, |found, waiting| {
                let fits = waiting.hash.is_of(code);
                if fits { Some(waiting) } else { found }
            })
            .map(|waiting| waiting.who.user.clone())
    }

    fn note_failure(&mut self, now: Timestamp) -> ApproveError {
        let stale = self.last_failure.is_some_and(|at| now.since(at) >= LOCKOUT);
        // A lock that is over counts as the end of what led to it: the next wrong code is the first
        // again, not the sixth.
        if stale || self.locked_until.is_some() {
            self.failures = 0;
            self.locked_until = None;
        }
        self.failures += 1;
        self.last_failure = Some(now);
        if self.failures >= FAILURES_UNTIL_LOCKOUT {
            let until = now.plus(LOCKOUT);
            self.locked_until = Some(until);
            return ApproveError::Locked { until };
        }
        ApproveError::NoSuchCode {
            left: FAILURES_UNTIL_LOCKOUT - self.failures,
        }
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.pending.retain(|_, waiting| waiting.who.holds_at(now));
    }

    fn evict_oldest(&mut self) {
        let oldest = self
            .pending
            .values()
            .min_by_key(|waiting| waiting.who.requested_at)
            .map(|waiting| waiting.who.user.clone());
        if let Some(user) = oldest {
            self.pending.remove(&user);
        }
    }
}

impl PendingPairing {
    fn holds_at(&self, now: Timestamp) -> bool {
        self.requested_at <= now && now < self.expires_at
    }
}

/// A stranger's name ends up in the operator's terminal: nothing that moves a cursor or turns text
/// around may come along.
fn legible(display: &str) -> String {
    display
        .chars()
        .filter(|c| !c.is_control() && !turns_text_around(*c))
        .take(DISPLAY_CHARS)
        .collect()
}

fn turns_text_around(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
