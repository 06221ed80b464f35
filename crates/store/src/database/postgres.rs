//! PostgreSQL behind the same handles: a few connections to write by, a few that cannot write, and a task that
//! knows of every write how it ended.
//!
//! What differs from SQLite is decided in `docs/decisions/0180-the-store-on-postgresql.md`: every commit waits
//! for the server's disk, and a commit whose answer was lost is looked up before anything is tried again.

mod address;
mod attempt;
mod beat;
mod committer;
mod failure;
mod migrations;
mod opening;

pub use address::{PostgresAddress, PostgresAddressError};
pub(super) use beat::BeatConnection;
pub(crate) use beat::LeaseListener;
pub(super) use failure::{is_of_postgres, remedy};
pub(super) use opening::{connect, read_all};
