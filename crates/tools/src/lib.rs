//! What an agent acts with.
//!
//! A tool here knows a sandbox, the policy and the redactor, and neither agent nor session: whoever
//! brings them together hands over a living [`Sandbox`](hermetic_sandbox::Sandbox). The order cannot
//! be changed, because each step takes what the one before made: a [`Request`] is read from
//! arguments, [`Terminal::clear`] makes a `Cleared` of it or a [`Blocked`], and only that runs.

#![forbid(unsafe_code)]

mod outcome;
mod output;
mod request;
mod terminal;

pub use outcome::{Blocked, Outcome};
pub use request::{BadRequest, Request, What};
pub use terminal::{Settings, Terminal};
