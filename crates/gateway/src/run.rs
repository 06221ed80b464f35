//! From the start to the last turn: serving, health, and the proof that backends work.

mod arrival_order;
mod chain_witness;
mod condition;
mod early_health;
mod exposition;
mod handle;
mod health;
mod housekeeping;
mod leased_backend;
mod leased_chat;
mod metrics;
mod proof;
mod room;
mod serve;
mod serving_lease;
mod shared_serving;
mod traces;

pub(crate) use arrival_order::ArrivalTurn;
pub use chain_witness::chain_place;
pub use condition::{GatewayCondition, GatewayPart, GatewayStage, Report};
pub use early_health::EarlyHealth;
pub use handle::{
    ConversationActFailed, DashboardBuilder, DashboardTerms, GatewayHandle, chat_state_words,
};
pub use leased_backend::LeasedBackend;
pub use leased_chat::LeasedChat;
pub use metrics::GatewayMetrics;
pub(crate) use metrics::{DeliveryEnd, MessageStage, TurnEnd};
pub use proof::ProofError;
pub use serve::{DrainOutcome, ServeError, serve};
pub use serving_lease::{LeaseClock, LeaseLoss, ServingLease, StandByError, StandByTerms};
pub use shared_serving::AdoptionError;
pub(crate) use shared_serving::{GatewaySignal, SharedServing};
pub(crate) use traces::SpanNote;
pub use traces::{FinishedSpan, MessageTraces, SpanValue, TraceExport};
