//! The life of one message, start to end.
//!
//! [`life`](self) is the page to read first: what was said is let in, written down, answered,
//! redacted and delivered, in this order. Around it:
//!
//! - `message` is what comes in: accepted messages, slash commands, notices of processes, and what a
//!   restart finds open;
//! - `conversation` is one task for each live conversation, which owns its queues and its turn;
//! - `delivery` is the outbox: a reply is written before it is sent, and may grow while it is written;
//! - `memory` is what outlives a conversation, and whose it is;
//! - `approvals` shows questions in chats and hears the answers;
//! - `run` starts, serves, and stops in two stages.
//!
//! Nothing of a conversation lives only here: killed at any instruction, the next start finds every
//! message that was taken over and brings it to its end.

#![forbid(unsafe_code)]

mod approvals;
mod conversation;
mod delivery;
mod gateway;
mod life;
mod memory;
mod message;
mod pairings;
mod run;
mod schedule;
mod spending;
mod stored_state;
#[cfg(test)]
mod test_chat;
#[cfg(test)]
mod test_lab;
mod wording;

pub use approvals::ApprovalService;
pub use conversation::{
    AgentChoices, AgentTools, ConversationSandbox, DelegationSettings, HistoryLine, LineNumbers,
    OWN_AGENT, PlatformTools, PlatformToolsets, ReadHistory, ResetSettings, network, write_summary,
};
pub use delivery::{StreamingSettings, ToolProgress};
pub use gateway::{BusyMode, Gateway, GatewayParts, GatewaySettings};
pub use memory::{KeyboardMemory, OwnerRule, PersonalMemory, PersonalTools, notes_in};
pub use message::{
    ArgumentDescription, COMMANDS, CommandAccess, CommandDescription, CommandRule,
    PlatformCommandAccess, ReachableSandboxes, VoiceNotes,
};
pub use pairings::StoredPairings;
pub use run::{
    AdoptionError, ConversationActFailed, DashboardBuilder, DashboardTerms, DrainOutcome,
    EarlyHealth, FinishedSpan, GatewayCondition, GatewayHandle, GatewayMetrics, GatewayPart,
    GatewayStage, LeaseClock, LeaseLoss, LeasedBackend, LeasedChat, MessageTraces, ProofError,
    Report, ServeError, ServingLease, SpanValue, StandByError, StandByTerms, TraceExport,
    chain_place, chat_state_words, serve,
};
pub use schedule::{
    HomeChannel, JobDelivery, JobDraft, JobOrder, JobRefused, ScheduleSettings, described_job,
    job_origin, listed_job, shown_moment,
};
pub use spending::{DayLimits, ServicePrices, SpendingLimits};
pub use stored_state::StoredAdapterState;
