//! What an agent acts with.
//!
//! A tool here knows a sandbox, the policy and the redactor, and neither agent nor session: whoever
//! brings them together hands over a [`Workplace`], which gives the conversation's one sandbox, and an
//! [`Ask`], which reaches a person. The order cannot be changed, because each step takes what the one
//! before made: a [`Request`] is read from arguments, [`Terminal::clear`] makes a `Cleared` of it or a
//! [`Blocked`], and only that runs.

#![forbid(unsafe_code)]

mod ansi;
mod ask;
mod background;
mod code;
mod exit_code;
mod files;
mod outcome;
mod output;
mod process;
mod request;
mod shell_queue;
pub mod shown;
mod sudo;
mod terminal;
mod toolbox;
mod workplace;

pub use ask::{Ask, Decided, Denied, Judged, NoOneToAsk};
pub use background::{Background, BackgroundSettings, NoWayBack, Notice, Noticed, Reach};
pub use code::{Code, CodeSettings, Directory};
pub use files::{Bounds, Files};
pub use outcome::{Blocked, Outcome};
pub use request::{BadRequest, Manner, Request, Tell, What};
pub use terminal::{Settings, Terminal};
pub use toolbox::{Answered, Described, Kit, Toolbox};
pub use workplace::{Held, NoSandbox, Workplace};
