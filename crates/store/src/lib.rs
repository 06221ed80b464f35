//! Rows that must survive a crash. The only crate that knows SQL.
//!
//! One SQLite file in WAL mode. A commit survives the death of the process at any instruction; in a
//! power cut the last moments may be lost (`synchronous = NORMAL`), which is the price of a turn
//! that does not wait for the disk.

#![forbid(unsafe_code)]

mod ledger;
mod open;

pub use ledger::{Entry, Ledger, LedgerState};
pub use open::{OpenError, Store, StoreError};
