//! What the gateway asks of the program it placed, and what that answers.
//!
//! Each is one frame: [`MAGIC`], a length, postcard. The magic is there because a login on the remote
//! host may print a greeting before anything of ours runs.

use std::time::Duration;

use hermetic_types::{ConversationKey, SandboxId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) const MAGIC: [u8; 8] = *b"\0hermssh";

/// An environment is the longest part of an order, a listing the longest answer.
pub(crate) const LONGEST_ORDER: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RemoteOrder {
    Create(RemoteSandbox),
    Connect(SandboxId),
    Stop(SandboxId),
    Resume(RemoteSandbox),
    Destroy(SandboxId),
    List,
}

/// One sandbox as the remote host knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteSandbox {
    pub(crate) id: SandboxId,
    pub(crate) conversation: ConversationKey,
    pub(crate) env: Vec<(String, String)>,
    /// Where commands start; a folder of the sandbox's own if absent.
    pub(crate) workdir: Option<String>,
    /// Ends with its first link.
    pub(crate) tied: bool,
    /// Its files outlive a stop.
    pub(crate) kept: bool,
    pub(crate) lifetime: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RemoteAnswer {
    /// The bytes that follow are a warden's.
    Linked,
    Done,
    Found(Vec<ListedSandbox>),
    NoSuchSandbox,
    Failed {
        step: String,
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedSandbox {
    pub(crate) id: SandboxId,
    pub(crate) state: RemoteState,
    /// Absent where nothing could be read: a create that was cut short.
    pub(crate) lodging: Option<RemoteSandbox>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RemoteState {
    Running,
    Stopped,
    Busy,
    Broken,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a frame of ours does not look like this")]
pub(crate) struct MalformedOrder;

pub(crate) fn frame<T: Serialize>(value: &T) -> Result<Vec<u8>, MalformedOrder> {
    let payload = postcard::to_stdvec(value).map_err(|_| MalformedOrder)?;
    if payload.len() > LONGEST_ORDER {
        return Err(MalformedOrder);
    }
    let length = u32::try_from(payload.len()).map_err(|_| MalformedOrder)?;
    Ok([&MAGIC[..], &length.to_be_bytes(), &payload].concat())
}

/// The payload's length, where it is one of ours.
pub(crate) fn length(bytes: [u8; 4]) -> Result<usize, MalformedOrder> {
    usize::try_from(u32::from_be_bytes(bytes))
        .ok()
        .filter(|length| *length <= LONGEST_ORDER)
        .ok_or(MalformedOrder)
}

pub(crate) fn payload<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MalformedOrder> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(MalformedOrder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_framed_comes_back() {
        let order = RemoteOrder::Stop(SandboxId::random());
        let framed = frame(&order).unwrap();
        let (head, rest) = framed.split_at(MAGIC.len());
        let (long, bytes) = rest.split_at(4);
        assert_eq!(head, MAGIC);
        assert_eq!(length(long.try_into().unwrap()), Ok(bytes.len()));
        assert_eq!(payload::<RemoteOrder>(bytes), Ok(order));
    }

    #[test]
    fn bytes_of_a_stranger_are_no_order() {
        for bytes in [&b""[..], b"\xff\xff\xff\xff", b"\x05trailing", b"Welcome!"] {
            assert_eq!(payload::<RemoteOrder>(bytes), Err(MalformedOrder));
        }
        assert_eq!(length([0xff; 4]), Err(MalformedOrder));
    }
}
