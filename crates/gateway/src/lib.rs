//! The life of one message, start to end.
//!
//! [`life`](self) is the page to read first: what was said is let in, written down, answered,
//! redacted and delivered, in this order. Around it:
//!
//! - `lanes` keeps one turn at a time for each conversation, and others in parallel;
//! - `seats` keeps one person's turns from filling the house;
//! - `session` is a conversation while a turn works on it: its history, its journal, its tools;
//! - `growing` shows an answer while it is written;
//! - `post` is the delivery ledger: a reply is written before it is sent;
//! - `approvals` are questions to people, `board` shows them in chats, `answers` hears the replies;
//! - `worksite` is where a platform's commands run;
//! - `files` brings files into the workspace and out of it;
//! - `afresh` ends a conversation whose time is over;
//! - `commands` are the slash commands, which need no model; `destroy` is the one that asks first;
//! - `meant` finds the question that an answer without a name is for;
//! - `serve` starts, resumes what a crash left open, and stops in two stages.
//!
//! Nothing of a conversation lives only here: killed at any instruction, the next start finds every
//! message that was taken over and brings it to its end.

#![forbid(unsafe_code)]

mod afresh;
mod answers;
mod approvals;
mod asking;
mod board;
mod commands;
mod condition;
mod destroy;
mod files;
mod gates;
mod gateway;
mod growing;
mod health;
mod hosts;
mod journal;
mod kept;
mod lanes;
mod life;
mod meant;
mod notices;
mod pairings;
mod post;
mod proof;
mod resume;
mod seats;
mod serve;
mod session;
mod slash;
#[cfg(test)]
mod test_lab;
mod toolbox;
mod wording;
mod worksite;

pub use afresh::Resets;
pub use approvals::{Answerer, Approvals, Asked, Asker, Desk, Guard, NobodyToAsk, TidyError};
pub use asking::Asking;
pub use condition::{Condition, Part, Report, Stage};
pub use gates::{Gate, Gates, PlatformGates};
pub use gateway::{Busy, Gateway, Parts, Settings};
pub use growing::Streaming;
pub use hosts::{HostAsker, HostRecord};
pub use journal::Line;
pub use notices::Reachable;
pub use pairings::StoredPairings;
pub use proof::ProofError;
pub use serve::{Drained, ServeError, serve};
pub use session::network;
pub use toolbox::{AgentTools, Own};
pub use worksite::{Worksite, Worksites};
