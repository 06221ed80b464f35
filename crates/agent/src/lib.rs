//! One turn: ask the model, run its tools, answer.
//!
//! [`Agent::take_turn`] is the loop. It knows the model, the tools and the record only by traits:
//! [`Model`] is whoever thinks ([`openai`] speaks to any compatible endpoint, [`Patient`] tries again
//! and falls back), [`Tools`] is whatever acts, and [`Journal`] writes each step down *before* it
//! happens, so that a crash in the middle is reported and no side effect is repeated in silence.
//!
//! What a tool brings back is data from an untrusted place and is handed to the model marked as such.
//! What the model says is not redacted here: whoever passes it on does that.

#![forbid(unsafe_code)]

mod history;
mod journal;
mod message;
mod model;
mod no_model;
pub mod openai;
mod patient;
pub mod prompt;
mod reply;
mod running;
mod schema;
mod steer;
mod tools;
mod turn;
mod untrusted;

pub use history::{Budget, mend, trim};
pub use journal::{Journal, JournalError, NoJournal};
pub use message::{CallId, Message, ToolCall};
pub use model::{Ask, Delta, Deltas, Finish, Fragment, Model, ModelError, Usage};
pub use no_model::NoModel;
pub use patient::{Patience, Patient};
pub use steer::Steer;
pub use tools::{Invocation, NoTools, ToolResult, ToolSpec, Tools};
pub use turn::{Agent, Answer, Ended, Input, Limits, Observer, Silent, Turn, TurnError};
pub use untrusted::Untrusted;
