//! One turn: ask the model, run its tools, answer.
//!
//! [`Agent::take_turn`] is the loop. It knows the model, the tools and the record only by traits:
//! [`Model`] is whoever thinks ([`openai`] speaks to any compatible endpoint, [`Patient`] tries again
//! and falls back), [`Tools`] is whatever acts, and [`Journal`] writes each step down *before* it
//! happens, so that a crash in the middle is reported and no side effect is repeated in silence.
//!
//! What a tool brings back is data from an untrusted place and is handed to the model marked as such.
//! A model is shown nothing but [`Message`]s, whose texts are [`ModelText`]: redacted, or the model's
//! own. What the model says is not redacted here: whoever passes it on does that.

#![forbid(unsafe_code)]

mod history;
mod journal;
mod media;
mod message;
mod model;
mod model_text;
mod no_model;
pub mod openai;
mod part;
mod patient;
pub mod prompt;
mod reply;
mod running;
mod schema;
mod steer;
mod stored_message;
mod tools;
mod turn;
mod untrusted;

pub use history::{Budget, mend, trim};
pub use journal::{Journal, JournalError, NoJournal};
pub use media::{InlineBytes, MOST_INLINE, Media, MediaError, MediaSource};
pub use message::{CallId, Message, ToolCall};
pub use model::{Ask, Delta, Deltas, Finish, Fragment, Model, ModelError, Usage};
pub use model_text::ModelText;
pub use no_model::NoModel;
pub use part::{AssistantPart, OpaquePart, Part};
pub use patient::{Patience, Patient};
pub use steer::Steer;
pub use stored_message::StoredMessage;
pub use tools::{Invocation, NoTools, ToolResult, ToolSpec, Tools};
pub use turn::{Agent, Answer, Ended, Input, Limits, Observer, Silent, Turn, TurnError};
pub use untrusted::Untrusted;
