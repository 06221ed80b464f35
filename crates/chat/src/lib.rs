//! Messages in, replies out.
//!
//! [`Chat`] is the seam: an account on a platform hands over what was said, together with a [`Receipt`]
//! that is signed once the message is safely stored, and takes replies that went through redaction. What
//! the platform can do it tells by [`Capabilities`]. What every platform needs (splitting, reading
//! Markdown, streaming by edits, a place for its own state) is plain code next to it. Platforms are
//! crates of their own, under `crates/platforms`, and pass the suite in `conformance`.

#![forbid(unsafe_code)]

mod adapter_state;
mod backoff;
mod capabilities;
mod check;
#[cfg(feature = "conformance")]
#[expect(clippy::panic, reason = "these are tests")]
pub mod conformance;
mod download;
mod draft;
mod intake;
pub mod markdown;
mod outgoing;
mod positions;
mod reaction_choices;
mod recent_keys;
mod refusal_log;
mod seam;
mod split;
mod throttled_chats;

pub use adapter_state::{
    ADAPTER_VALUE_BYTES, AdapterState, AdapterStateError, InMemoryState, SaveDurability,
    StateChange,
};
pub use backoff::Backoff;
pub use capabilities::{
    ButtonLimits, Capabilities, ChoiceShape, MissedMessages, Redelivery, ReplyRule,
    ReportedChanges, TextLimit, TextUnit, UnaskedMessages,
};
pub use check::{AccountCheck, AccountShortcoming, CheckError};
pub use download::{DOWNLOAD_STALL, bounded_download};
pub use draft::DraftMessage;
pub use intake::HttpIntake;
pub use outgoing::{ChatReply, InvalidButton, OutgoingFile, OutgoingText, ReplyButton, SendKey};
pub use positions::{ChannelPositions, MOST_CHANNELS, Position};
pub use reaction_choices::ReactionChoices;
pub use recent_keys::RecentKeys;
pub use refusal_log::RefusalLog;
pub use seam::{
    AttachmentStream, Chat, ChatEvent, ChatState, DownloadError, Receipt, ReceiptWaiter,
    ReceiveError, ReceivedEvent, SendError, SendFailure, Signature, UndeliveredReply,
};
pub use throttled_chats::ThrottledChats;
