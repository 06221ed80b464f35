//! The record of every decision: who, where to, by which rule, how much, how long. Never a body, a
//! header or a path.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::ConversationKey;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::account::{AgentTraffic, BudgetSpent, TrafficAccount};
use crate::outgoing::OutgoingBudget;

/// Takes an entry for every decision.
///
/// An implementer promises to return quickly: it is called on the connection's path.
pub trait EgressRecorder: Send + Sync {
    fn write(&self, entry: &EgressEntry);
}

/// One decision about one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressEntry {
    pub conversation: ConversationKey,
    pub host: String,
    pub port: u16,
    pub address: Option<SocketAddr>,
    pub how: EgressMethod,
    /// The rule that decided, in the words of whoever wrote it.
    pub rule: String,
    pub verdict: EgressDecision,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub duration: Duration,
}

/// The protocol by which the sandbox asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EgressMethod {
    Connect,
    Http,
    Socks,
    /// TLS ended here, with a credential put in.
    Credential,
}

/// What was decided, or how a connection ended that had been opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EgressDecision {
    /// The connection stands.
    Opened,
    /// It has ended; the entry has its totals. `fault` is set where it did not end by itself.
    Closed {
        fault: Option<String>,
    },
    Refused {
        reason: String,
    },
}

/// Writes entries to the log, as fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRecorder;

impl EgressRecorder for LogRecorder {
    fn write(&self, entry: &EgressEntry) {
        let (verdict, reason) = match &entry.verdict {
            EgressDecision::Opened => ("opened", None),
            EgressDecision::Closed { fault } => ("closed", fault.as_deref()),
            EgressDecision::Refused { reason } => ("refused", Some(reason.as_str())),
        };
        let how = match entry.how {
            EgressMethod::Connect => "connect",
            EgressMethod::Http => "http",
            EgressMethod::Socks => "socks",
            EgressMethod::Credential => "credential",
        };
        tracing::info!(
            conversation = %entry.conversation,
            host = entry.host,
            port = entry.port,
            address = entry.address.map(tracing::field::display),
            how,
            rule = entry.rule,
            verdict,
            reason,
            bytes_up = entry.bytes_up,
            bytes_down = entry.bytes_down,
            milliseconds = u64::try_from(entry.duration.as_millis()).unwrap_or(u64::MAX),
            "egress"
        );
    }
}

impl<R: EgressRecorder + ?Sized> EgressRecorder for Arc<R> {
    fn write(&self, entry: &EgressEntry) {
        (**self).write(entry);
    }
}

/// Passes each entry to every recorder, in this order.
impl EgressRecorder for Vec<Arc<dyn EgressRecorder>> {
    fn write(&self, entry: &EgressEntry) {
        self.iter().for_each(|recorder| recorder.write(entry));
    }
}

/// Counts the bytes of one connection, against the budget of its conversation.
#[derive(Debug)]
pub(crate) struct ByteMeter {
    account: Arc<TrafficAccount>,
    /// Bounds what leaves beyond the conversation's own account.
    outgoing: Option<(ConversationKey, Arc<dyn OutgoingBudget>)>,
    /// Counts it once more, for the agent whose host this is.
    agent: Option<Arc<AgentTraffic>>,
    up: AtomicU64,
    down: AtomicU64,
}

impl ByteMeter {
    pub(crate) fn new(account: Arc<TrafficAccount>) -> Self {
        Self {
            account,
            outgoing: None,
            agent: None,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        }
    }

    /// The same, which asks this budget before anything leaves.
    fn bounded_by(mut self, key: ConversationKey, budget: Option<Arc<dyn OutgoingBudget>>) -> Self {
        self.outgoing = budget.map(|budget| (key, budget));
        self
    }

    /// The same, which counts a request of an agent and its bytes.
    fn counted_for(mut self, agent: Option<Arc<AgentTraffic>>) -> Self {
        if let Some(agent) = &agent {
            agent.add_request();
        }
        self.agent = agent;
        self
    }

    pub(crate) fn up(&self, bytes: usize) -> Result<(), BudgetSpent> {
        self.account.spend(bytes)?;
        if let Some((key, budget)) = &self.outgoing {
            budget.spend(key, bytes as u64)?;
        }
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(agent) = &self.agent {
            agent.add_up(bytes as u64);
        }
        Ok(())
    }

    pub(crate) fn down(&self, bytes: usize) -> Result<(), BudgetSpent> {
        self.account.spend(bytes)?;
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(agent) = &self.agent {
            agent.add_down(bytes as u64);
        }
        Ok(())
    }

    pub(crate) fn has_come_down(&self) -> bool {
        self.down.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn total(&self) -> u64 {
        self.up.load(Ordering::Relaxed) + self.down.load(Ordering::Relaxed)
    }
}

/// The record of one open connection. Dropping it writes how the connection ended, whatever ended it.
pub(crate) struct ConnectionRecord {
    recorder: Arc<dyn EgressRecorder>,
    entry: EgressEntry,
    started: Instant,
    fault: Mutex<Option<String>>,
    pub(crate) meter: ByteMeter,
}

impl ConnectionRecord {
    /// Writes that the connection was opened, before a byte of it is relayed.
    pub(crate) fn open(
        recorder: Arc<dyn EgressRecorder>,
        entry: EgressEntry,
        (account, outgoing): (Arc<TrafficAccount>, Option<Arc<dyn OutgoingBudget>>),
        agent: Option<Arc<AgentTraffic>>,
    ) -> Self {
        recorder.write(&entry);
        let key = entry.conversation.clone();
        Self {
            recorder,
            entry,
            started: Instant::now(),
            fault: Mutex::new(None),
            meter: ByteMeter::new(account)
                .bounded_by(key, outgoing)
                .counted_for(agent),
        }
    }

    /// Remembers why the connection ended. The first fault counts: later ones follow from it.
    pub(crate) fn fault(&self, fault: impl fmt::Display) {
        let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| fault.to_string());
    }
}

impl Drop for ConnectionRecord {
    fn drop(&mut self) {
        let slot = self.fault.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.entry.verdict = EgressDecision::Closed { fault: slot.take() };
        self.entry.bytes_up = self.meter.up.load(Ordering::Relaxed);
        self.entry.bytes_down = self.meter.down.load(Ordering::Relaxed);
        self.entry.duration = self.started.elapsed();
        self.recorder.write(&self.entry);
    }
}
