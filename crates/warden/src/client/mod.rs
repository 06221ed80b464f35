//! The gateway's end: calls a warden and believes nothing it says.
//!
//! Every frame is bounded and every value is only data. Bytes that break the protocol end the link,
//! and with it every call on it, with an error that names the breach. A caller who does not read
//! holds up his own call at the warden's side and costs one window of memory here. Silence does not
//! hold up anybody either: a warden that stops answering is cut off.

mod files;
mod greet;
mod listener;
mod pulse;
mod running;
mod warden;

pub use files::{FileReader, FileWriter};
pub use greet::GreetError;
pub use listener::{InsideListener, RelayStream};
pub use running::{RunEvent, RunningCommand, StdinStream};
pub use warden::{HoldOutcome, Warden, WardenServices};

use hermetic_types::HolderEpoch;
use thiserror::Error;

use crate::mux::StreamError;
use crate::protocol::frame::{FrameError, FrameKind};
use crate::protocol::{MalformedMessage, WardenFailure};

/// Why a call did not end well.
#[derive(Debug, Error)]
pub enum WardenCallError {
    /// The warden said no.
    #[error(transparent)]
    Failed(#[from] WardenFailure),
    #[error("the link to the warden is gone")]
    LinkLost,
    #[error("the warden broke the protocol")]
    Breach(#[from] ProtocolBreach),
    /// A later holder was greeted: nothing that is said over a link of ours is done any more.
    #[error("another gateway has this sandbox")]
    HeldElsewhere { since: HolderEpoch },
    #[error("a request of {length} bytes is over the bound of {bound}")]
    RequestTooLong { length: usize, bound: usize },
}

/// What a warden did that no warden of ours does.
#[derive(Debug, Error)]
pub enum ProtocolBreach {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    #[error("a {0:?} frame where none belongs")]
    Unexpected(FrameKind),
    #[error("an answer to another question")]
    WrongReply,
    #[error("more stdin taken than was sent")]
    StdinOvertaken,
    #[error("more bytes than were asked for")]
    TooMuchData,
    #[error("a command that does not end when its time is over")]
    Unending,
}

impl From<StreamError> for WardenCallError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Frame(error) => Self::Breach(error.into()),
            StreamError::Closed | StreamError::Io(_) => Self::LinkLost,
        }
    }
}

impl From<MalformedMessage> for WardenCallError {
    fn from(malformed: MalformedMessage) -> Self {
        Self::Breach(malformed.into())
    }
}
