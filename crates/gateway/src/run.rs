//! From the start to the last turn: serving, health, and the proof that backends work.

mod condition;
mod health;
mod housekeeping;
mod metrics;
mod proof;
mod room;
mod serve;

pub use condition::{Condition, Part, Report, Stage};
pub use metrics::GatewayMetrics;
pub(crate) use metrics::TurnEnd;
pub use proof::ProofError;
pub use serve::{Drained, ServeError, serve};
