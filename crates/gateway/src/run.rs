//! From the start to the last turn: serving, health, and the proof that backends work.

mod condition;
mod early_health;
mod exposition;
mod handle;
mod health;
mod housekeeping;
mod metrics;
mod proof;
mod room;
mod serve;
mod traces;

pub use condition::{GatewayCondition, GatewayPart, GatewayStage, Report};
pub use early_health::EarlyHealth;
pub use handle::{
    ConversationActFailed, DashboardBuilder, DashboardTerms, GatewayHandle, chat_state_words,
};
pub use metrics::GatewayMetrics;
pub(crate) use metrics::{DeliveryEnd, MessageStage, TurnEnd};
pub use proof::ProofError;
pub use serve::{DrainOutcome, ServeError, serve};
pub(crate) use traces::SpanNote;
pub use traces::{FinishedSpan, MessageTraces, SpanValue, TraceExport};
