//! Rows that must survive a crash. The only crate that knows SQL.
//!
//! Each kind of row has a handle and a file here. What is behind them, today one SQLite file in WAL mode,
//! is known to [`database`] alone; another database goes there. Everything is written in commits that are
//! checked. Of a power cut survives what was on the disk, and each method that writes says whether it waits for
//! that; `docs/decisions/0020-what-waits-for-the-disk.md` has the whole list and the reasons.

#![forbid(unsafe_code)]

mod adapter_state;
mod approvals;
mod database;
mod deliveries;
mod documents;
mod history;
mod inbox;
mod ledger;
mod processes;
mod store;
mod tool_calls;

pub use adapter_state::AccountState;
pub use approvals::{
    Approvals, Given, NewRequest, Notice, Outcome, Reply, Request, Scope, State, Subject,
};
pub use database::{DatabaseError, OpenError, Owner, StoreError};
pub use deliveries::{Deliveries, DeliveryRow, Due, Handed, NextDelivery, Tried};
pub use documents::{Document, Documents, Replaced};
pub use history::History;
pub use inbox::{End, Inbox, MessageRow, Open};
pub use ledger::{Entry, Ledger, LedgerState};
pub use processes::{ProcessRow, Processes};
pub use store::Store;
pub use tool_calls::{ToolCall, ToolCalls};
