//! From the start to the last turn: serving, health, and the proof that backends work.

mod condition;
mod health;
mod housekeeping;
mod proof;
mod room;
mod serve;

pub use condition::{Condition, Part, Report, Stage};
pub use proof::ProofError;
pub use serve::{Drained, ServeError, serve};
