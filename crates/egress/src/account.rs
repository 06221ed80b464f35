//! What one conversation has used: open connections and bytes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use thiserror::Error;

/// The connections and bytes of one conversation, counted against its limits.
#[derive(Debug)]
pub struct TrafficAccount {
    connections: AtomicUsize,
    most_connections: usize,
    bytes: AtomicU64,
    budget: Option<u64>,
}

/// What went to the hosts of somebody else's agent and came from there, counted for whoever keeps its budgets.
#[derive(Debug, Default)]
pub(crate) struct AgentTraffic {
    requests: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

/// How much that is at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentTrafficSum {
    /// Requests that a credential was put into; elsewhere connections.
    pub requests: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

impl AgentTraffic {
    pub(crate) fn sum(&self) -> AgentTrafficSum {
        AgentTrafficSum {
            requests: self.requests.load(Ordering::Relaxed),
            bytes_up: self.up.load(Ordering::Relaxed),
            bytes_down: self.down.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn add_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_up(&self, bytes: u64) {
        self.up.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_down(&self, bytes: u64) {
        self.down.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// One connection of a conversation; dropping it gives the slot back.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<TrafficAccount>);

/// The error of a conversation that has used all the bytes it may.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the budget of {budget} bytes {scope} is used up")]
pub struct BudgetSpent {
    pub budget: u64,
    pub scope: BudgetScope,
}

/// Whose budget, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    /// Both ways, for as long as a conversation lives.
    Life,
    /// What leaves for one conversation on a day.
    Conversation,
    /// The same for all conversations of a person.
    Person,
    /// The same for everybody.
    All,
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Life => "for this conversation",
            Self::Conversation => "that may leave this conversation on one day",
            Self::Person => "that may leave for one person on one day",
            Self::All => "that may leave for everybody together on one day",
        })
    }
}

impl TrafficAccount {
    pub(crate) fn new(most_connections: usize, budget: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            connections: AtomicUsize::new(0),
            most_connections,
            bytes: AtomicU64::new(0),
            budget,
        })
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What this conversation used before this account was opened.
    pub fn carry_over(&self, bytes: u64) {
        // The larger of the two: what was carried over may come after the first bytes, and must not
        // be added to them twice.
        self.bytes.fetch_max(bytes, Ordering::AcqRel);
    }

    pub(crate) fn open(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let most = self.most_connections;
        let one_more = |open: usize| (open < most).then_some(open + 1);
        self.connections
            // In one step, so that two who ask at once do not both get the last slot.
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more)
            .ok()?;
        Some(ConnectionSlot(Arc::clone(self)))
    }

    /// Called before the bytes are passed on, so that not one too many is.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), BudgetSpent> {
        let bytes = bytes as u64;
        let Some(budget) = self.budget else {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        };
        let within = |spent: u64| spent.checked_add(bytes).filter(|&total| total <= budget);
        self.bytes
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, within)
            .map(|_| ())
            .map_err(|_| spent(budget))
    }

    pub(crate) fn check(&self) -> Result<(), BudgetSpent> {
        match self.budget {
            Some(budget) if self.bytes() >= budget => Err(spent(budget)),
            _ => Ok(()),
        }
    }
}

fn spent(budget: u64) -> BudgetSpent {
    let scope = BudgetScope::Life;
    BudgetSpent { budget, scope }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back() {
        let account = TrafficAccount::new(2, None);
        let (one, two) = (account.open(), account.open());
        assert!(one.is_some() && two.is_some() && account.open().is_none());
        drop(one);
        assert!(account.open().is_some());
    }

    #[test]
    fn the_budget_is_never_overdrawn() {
        let account = TrafficAccount::new(1, Some(100));
        assert_eq!(account.spend(60), Ok(()));
        assert_eq!(account.spend(41), Err(super::spent(100)));
        assert_eq!(account.spend(40), Ok(()));
        assert!(account.check().is_err());
        assert_eq!(account.bytes(), 100);
    }

    #[test]
    fn what_was_used_before_counts() {
        let account = TrafficAccount::new(1, Some(100));
        account.carry_over(90);
        account.carry_over(10);
        assert!(account.spend(11).is_err() && account.spend(10).is_ok());
        account.carry_over(u64::MAX);
        assert!(account.check().is_err() && account.spend(1).is_err());
    }
}
