//! Ids and plain data that every part of Hermetic speaks of.
//!
//! Nothing here does I/O or knows a backend's details, and only [`SystemClock`] reads a clock. Each id is a type of its
//! own, so that a conversation cannot be handed over where a sandbox is meant.

#![forbid(unsafe_code)]

mod account;
mod backend;
mod clock;
mod command;
mod health;
mod ids;
mod limits;
#[cfg(feature = "calendar")]
mod message;
mod platform;
mod request;
mod secret;
mod timestamp;

pub use account::{AccountId, AccountName, InvalidAccount};
pub use backend::{BackendDescription, BackendKind, Boundary, UnknownBackend};
pub use clock::{Clock, SharedClock, SystemClock};
pub use command::{Command, CommandInput, CommandProgram, OutputMode};
pub use health::{HealthReport, PartHealth};
pub use ids::{
    ConversationKey, GatewayId, HolderEpoch, InstallationId, InvalidId, JobId, RunId, SandboxId,
};
pub use limits::SandboxLimits;
#[cfg(feature = "calendar")]
pub use message::{
    Attachment, AttachmentKind, ButtonPress, ChatKind, ChatPlace, DeletedMessage, IncomingMessage,
    QuotedMessage, Sender,
};
pub use platform::{
    AttachmentId, ChatId, InvalidName, MessageId, Platform, RoleId, ThreadId, UnknownPlatform,
    UpdateId, UserId,
};
pub use request::{InvalidRequestId, RequestId};
pub use secret::Secret;
pub use timestamp::Timestamp;
#[cfg(feature = "calendar")]
pub use timestamp::rfc3339;
