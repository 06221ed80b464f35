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

use crate::account::{Account, BudgetSpent};

/// Where entries go.
///
/// An implementer promises to return quickly: it is called on the connection's path.
pub trait Record: Send + Sync {
    fn write(&self, entry: &Entry);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub conversation: ConversationKey,
    pub host: String,
    pub port: u16,
    pub address: Option<SocketAddr>,
    pub how: How,
    /// The rule that decided, in the words of whoever wrote it.
    pub rule: String,
    pub verdict: Decision,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub duration: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    Connect,
    Http,
    Socks,
    /// TLS ended here, with a credential put in.
    Credential,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
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
pub struct LogRecord;

impl Record for LogRecord {
    fn write(&self, entry: &Entry) {
        let (verdict, reason) = match &entry.verdict {
            Decision::Opened => ("opened", None),
            Decision::Closed { fault } => ("closed", fault.as_deref()),
            Decision::Refused { reason } => ("refused", Some(reason.as_str())),
        };
        let how = match entry.how {
            How::Connect => "connect",
            How::Http => "http",
            How::Socks => "socks",
            How::Credential => "credential",
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

impl<R: Record + ?Sized> Record for Arc<R> {
    fn write(&self, entry: &Entry) {
        (**self).write(entry);
    }
}

/// To each of them, in this order.
impl Record for Vec<Arc<dyn Record>> {
    fn write(&self, entry: &Entry) {
        self.iter().for_each(|record| record.write(entry));
    }
}

/// Counts the bytes of one connection, against the budget of its conversation.
#[derive(Debug)]
pub(crate) struct Meter {
    account: Arc<Account>,
    up: AtomicU64,
    down: AtomicU64,
}

impl Meter {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self {
            account,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        }
    }

    pub(crate) fn up(&self, bytes: usize) -> Result<(), BudgetSpent> {
        self.account.spend(bytes)?;
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn down(&self, bytes: usize) -> Result<(), BudgetSpent> {
        self.account.spend(bytes)?;
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn has_come_down(&self) -> bool {
        self.down.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn total(&self) -> u64 {
        self.up.load(Ordering::Relaxed) + self.down.load(Ordering::Relaxed)
    }
}

/// An open connection's place in the record: writes how it ended when dropped, however it ended.
pub(crate) struct Ticket {
    record: Arc<dyn Record>,
    entry: Entry,
    started: Instant,
    fault: Mutex<Option<String>>,
    pub(crate) meter: Meter,
}

impl Ticket {
    pub(crate) fn open(record: Arc<dyn Record>, entry: Entry, account: Arc<Account>) -> Self {
        record.write(&entry);
        Self {
            record,
            entry,
            started: Instant::now(),
            fault: Mutex::new(None),
            meter: Meter::new(account),
        }
    }

    pub(crate) fn fault(&self, fault: impl fmt::Display) {
        let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| fault.to_string());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let slot = self.fault.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.entry.verdict = Decision::Closed { fault: slot.take() };
        self.entry.bytes_up = self.meter.up.load(Ordering::Relaxed);
        self.entry.bytes_down = self.meter.down.load(Ordering::Relaxed);
        self.entry.duration = self.started.elapsed();
        self.record.write(&self.entry);
    }
}
