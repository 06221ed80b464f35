//! A model that says what the test wrote down.
//!
//! [`ScriptedModel`] stands in for the `Model` trait within the process; [`ScriptedServer`] is an
//! endpoint on loopback that speaks chat completions, for tests of what lies on the wire.

mod script;
mod server;

pub use script::{Line, ScriptedModel};
pub use server::{Piece, Received, Reply, ScriptedServer};
