//! Rows that must survive a crash. The only crate that knows SQL.
//!
//! One SQLite file in WAL mode. A commit survives the death of the process at any instruction; in a
//! power cut the last moments may be lost (`synchronous = NORMAL`), which is the price of a turn
//! that does not wait for the disk.

#![forbid(unsafe_code)]

mod approvals;
mod deliveries;
mod documents;
mod history;
mod inbox;
mod ledger;
mod open;
mod processes;
mod tool_calls;

pub use approvals::{
    Approvals, Given, NewRequest, Notice, Outcome, Reply, Request, Scope, State, Subject,
};
pub use deliveries::{Deliveries, DeliveryRow, Due};
pub use documents::{Document, Documents, Replaced};
pub use history::History;
pub use inbox::{End, Inbox, MessageRow, Open};
pub use ledger::{Entry, Ledger, LedgerState};
pub use open::{OpenError, Store, StoreError};
pub use processes::{ProcessRow, Processes};
pub use tool_calls::{ToolCall, ToolCalls};
