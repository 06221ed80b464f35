//! Messages in, replies out.
//!
//! [`Chat`] is the seam: a platform hands over what was said, together with a [`Receipt`] that is
//! signed once the message is safely stored, and takes replies that went through redaction. What
//! every platform needs (splitting, formatting, streaming by edits) is plain code next to it.

#![forbid(unsafe_code)]

mod backoff;
mod draft;
mod fence;
pub mod markdown;
mod outgoing;
#[doc(hidden)]
pub mod parsers;
mod seam;
mod split;
pub mod telegram;
pub mod webhook;

pub use draft::Draft;
pub use outgoing::{Button, InvalidButton, Outgoing, OutgoingFile, Reply};
pub use seam::{
    AttachmentStream, Chat, ChatState, Counterfoil, DownloadError, Event, Receipt, ReceiveError,
    Received, SendError, SendFailure,
};
pub use split::split;
