//! What the bytes between the gateway and a warden mean.
//!
//! - First a [`hello`] in each direction, raw, so that two versions that do not know each other's
//!   multiplexing still part with a clear word.
//! - Then yamux. The gateway opens a stream for each call; the warden opens one for each connection
//!   it accepted on a listener.
//! - On a stream, [`frame`]s: a kind, a length, a payload. The first is the [`WardenRequest`]; what
//!   follows depends on it. Small structures are postcard, bulk data is raw bytes.
//!
//! No length is trusted: each kind has a bound, and a frame beyond it ends the link. A second,
//! in-stream credit exists for one thing only, a command's stdin (see [`STDIN_WINDOW`]): a command
//! that does not read must not keep a signal from reaching it.

mod bytestring;
pub mod frame;
pub mod hello;
mod reply;
mod request;

pub use bytestring::ByteString;
pub use reply::{
    CommandEnd, CommandUsage, CutReason, ExitState, FailureKind, FileKind, FileMetadata,
    FileVersion, FolderEntry, ListenReply, ResolvedName, RunSummary, ShellLost, WardenFailure,
    WardenInfo, WardenReply,
};
pub use request::{
    AttachRequest, HoldRequest, KillRequest, LeftoverPolicy, ListenEndpoint, ListenRequest,
    OutputStreams, PLACE, PathAt, ReadRequest, ResolveRequest, RunRequest, ShellRequest, StdinMode,
    SymlinkPolicy, WardenRequest, WindowSize, WriteRequest,
};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A request may carry a megabyte of shell text and its quoting.
pub const MAX_REQUEST: usize = 2 << 20;
/// A directory listing is the longest answer.
pub const MAX_REPLY: usize = 1 << 20;
/// Bulk frames. One is also the most that yamux sends in a piece, so a frame arrives in one.
pub const MAX_DATA: usize = 128 << 10;
/// How much stdin may be on its way to a command that has not taken it yet.
pub const STDIN_WINDOW: usize = 256 << 10;
/// Entries in one listing; more is an error rather than a silent cut.
pub const MAX_ENTRIES: usize = 10_000;

#[derive(Debug, Error, PartialEq, Eq)]
#[error("malformed {what}")]
pub struct MalformedMessage {
    pub what: &'static str,
}

/// # Panics
/// Never: writing postcard to a `Vec` has no way to fail for types without maps of unknown length.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The whole payload must be used: trailing bytes mean that the two sides disagree.
pub fn decode<T: DeserializeOwned>(
    payload: &[u8],
    what: &'static str,
) -> Result<T, MalformedMessage> {
    match postcard::take_from_bytes(payload) {
        Ok((value, [])) => Ok(value),
        _ => Err(MalformedMessage { what }),
    }
}
