//! One turn: ask the model, run its tools, answer.
//!
//! [`Agent::take_turn`] is the loop. It knows the model, the tools and the record only by traits:
//! [`LanguageModel`] is whoever thinks ([`endpoint`] speaks the dialects of the providers, [`RetryingModel`] tries again
//! and falls back), [`ToolSet`] is whatever acts, and [`TurnJournal`] writes each step down *before* it
//! happens, so that a crash in the middle is reported and no side effect is repeated in silence.
//!
//! What a tool brings back is data from an untrusted place and is handed to the model marked as such.
//! A model is shown nothing but [`Message`]s, whose texts are [`ModelText`]: redacted, or the model's
//! own. What the model says is not redacted here: whoever passes it on does that.

#![forbid(unsafe_code)]

mod answer_reader;
mod anthropic;
mod chat_completions;
mod compaction;
pub mod endpoint;
mod gemini;
mod history;
mod journal;
mod json_shape;
mod media;
mod message;
mod model;
mod model_text;
mod no_model;
mod part;
mod price;
pub mod prompt;
mod reply;
mod responses;
mod retrying_model;
mod running;
mod schema;
mod spending;
mod steer;
mod stored_message;
mod summary;
mod tool_names;
mod tools;
mod transcript;
mod turn;
mod untrusted;

pub use compaction::{
    CompactedHistory, CompactionError, CompactionOrder, CompactionSettings, NOBODY_WROTE,
};
pub use history::{HistoryBudget, mend, trim};
pub use journal::{JournalError, NoJournal, TurnJournal};
pub use media::{InlineBytes, MOST_INLINE, MediaError, MediaPart, MediaSource};
pub use message::{CallId, Message, ToolCall};
pub use model::{
    CallFragment, Deltas, FinishReason, LanguageModel, ModelError, ModelRequest, ReplyDelta,
    TokenUsage,
};
pub use model_text::ModelText;
pub use no_model::NoModel;
pub use part::{AssistantPart, MessagePart, OpaquePart};
pub use price::{NanoDollars, TokenPrice};
pub use retrying_model::{ModelRetries, RetryingModel};
pub use spending::{NoMeter, RequestEstimate, SpendingMeter, SpendingRefused, SpentTokens};
pub use steer::SteeringHandle;
pub use stored_message::StoredMessage;
pub use summary::{HistorySummary, StoredSummary};
pub use tools::{NoTools, ToolInvocation, ToolResult, ToolSet, ToolSpec};
pub use turn::{
    Agent, AgentTurn, LengthNote, SilentObserver, TurnAnswer, TurnBounds, TurnEnding, TurnError,
    TurnInput, TurnObserver, TurnTaker,
};
pub use untrusted::UntrustedOutput;
