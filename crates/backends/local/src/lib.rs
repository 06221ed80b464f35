//! The host itself, for trusted use.
//!
//! No boundary: a command here can do what its user can. What the contract asks for beyond that is
//! kept all the same: a clean environment, a process tree that can be ended whole, nothing left
//! behind. One warden for each sandbox, as a plain process that adopts the orphans of what it
//! started.

#![forbid(unsafe_code)]

mod folder;
mod local;

pub use local::{LocalBackend, LocalConfig};
