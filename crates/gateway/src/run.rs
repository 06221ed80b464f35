//! From the start to the last turn: serving, health, and the proof that backends work.

mod condition;
mod early_health;
mod health;
mod housekeeping;
mod metrics;
mod proof;
mod room;
mod serve;

pub use condition::{GatewayCondition, GatewayPart, GatewayStage, Report};
pub use early_health::EarlyHealth;
pub use metrics::GatewayMetrics;
pub(crate) use metrics::TurnEnd;
pub use proof::ProofError;
pub use serve::{DrainOutcome, ServeError, serve};
