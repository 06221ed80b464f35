//! Rows that must survive a crash. The only crate that knows SQL.
//!
//! One SQLite file in WAL mode. Everything is written by [`write`](self), in commits that are checked.
//! Of a power cut survives what was on the disk, and each method that writes says whether it waits for
//! that; `docs/decisions/0020-what-waits-for-the-disk.md` has the whole list and the reasons.

#![forbid(unsafe_code)]

mod adapter_state;
mod approvals;
mod deliveries;
mod documents;
mod history;
mod inbox;
mod ledger;
#[cfg(test)]
mod old_stores;
mod open;
mod processes;
mod tool_calls;
mod write;

pub use adapter_state::AccountState;
pub use approvals::{
    Approvals, Given, NewRequest, Notice, Outcome, Reply, Request, Scope, State, Subject,
};
pub use deliveries::{Deliveries, DeliveryRow, Due, Handed, NextDelivery, Tried};
pub use documents::{Document, Documents, Replaced};
pub use history::History;
pub use inbox::{End, Inbox, MessageRow, Open};
pub use ledger::{Entry, Ledger, LedgerState};
pub use open::{OpenError, Store, StoreError};
pub use processes::{ProcessRow, Processes};
pub use tool_calls::{ToolCall, ToolCalls};
