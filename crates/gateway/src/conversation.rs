//! One conversation: what waits in it, what runs, and how a turn is taken.
//!
//! A live conversation is one task (`task`) with a bounded inbox. It owns the two queues, the running
//! turn, steering and interruption; `registry` knows which conversations are live.

mod agents;
mod auto_reset;
mod checkpoint;
mod clarify;
mod command_reply;
mod commands;
mod compact;
mod control;
mod delegate_tool;
mod destroy;
pub(crate) mod journal;
mod overview;
mod own_tool;
mod past_sessions;
mod platform_tools;
mod queues;
mod registry;
pub(crate) mod sandbox_tools;
mod task;
mod turn;
mod turn_limits;
mod undo;
mod vision;

pub(crate) use agents::Answerer;
pub use agents::{AgentChoices, OWN_AGENT};
pub use auto_reset::ResetSettings;
pub(crate) use clarify::Clarifications;
pub(crate) use commands::CommandError;
pub(crate) use control::TurnControl;
pub use delegate_tool::DelegationSettings;
pub(crate) use destroy::DestroyConfirmations;
pub use journal::{HistoryLine, LineNumbers, ReadHistory, write_summary};
pub(crate) use own_tool::OwnTool;
pub(crate) use past_sessions::title;
pub use platform_tools::{PlatformTools, PlatformToolsets};
pub(crate) use queues::{EditOutcome, InterruptionReport};
pub(crate) use registry::ConversationRegistry;
pub(crate) use sandbox_tools::holder_of;
pub use sandbox_tools::{AgentTools, ConversationSandbox};
pub use turn::network;
pub(crate) use turn_limits::TurnLimits;

/// Whether somebody who sends more than can wait has been told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    Now,
    Already,
}
