//! What goes out: replies that are written down before they are sent, and answers that grow.

mod attempt;
mod destinations;
mod late_files;
mod live_reply;
mod outbound_files;
mod outbox;
mod working_off;

pub(crate) use live_reply::LiveReply;
pub use live_reply::{StreamingSettings, ToolProgress};
#[cfg(test)]
pub(crate) use outbound_files::FetchError;
pub(crate) use outbound_files::{FileSource, OutboundFiles, ParsedAnswer, without_tags};
pub(crate) use outbox::{DeliveredReply, Outbox, OutboxParts, a_moment_after};
