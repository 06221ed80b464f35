//! Files in and out, as streams: a file of any size costs one frame of memory.

use std::sync::Arc;

use bytes::Bytes;

use super::warden::{ClientCall, ClientLink};
use super::{ProtocolBreach, WardenCallError};
use crate::protocol::frame::FrameKind;
use crate::protocol::{
    FileMetadata, MAX_DATA, ReadRequest, WardenReply, WardenRequest, WriteRequest,
};

/// A file being read.
#[derive(Debug)]
pub struct FileReader {
    call: ClientCall,
    metadata: FileMetadata,
    /// How much the warden may still send, where a length was asked for.
    left: Option<u64>,
    done: bool,
}

/// A file being written. It does not exist before [`finish`](Self::finish); dropping this instead
/// leaves no trace of it.
#[derive(Debug)]
pub struct FileWriter {
    call: ClientCall,
}

impl FileReader {
    pub(super) async fn open(
        link: &Arc<ClientLink>,
        read: ReadRequest,
    ) -> Result<Self, WardenCallError> {
        let left = read.length;
        let mut call = link.call(&WardenRequest::Read(read)).await?;
        match call.reply().await? {
            WardenReply::Metadata(metadata) => Ok(Self {
                call,
                metadata,
                left,
                done: false,
            }),
            _ => Err(link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// As it was when the file was opened.
    pub fn metadata(&self) -> &FileMetadata {
        &self.metadata
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, WardenCallError> {
        if self.done {
            return Ok(None);
        }
        let frame = self.call.frame().await?;
        match frame.kind {
            FrameKind::Data => {
                if let Some(left) = &mut self.left {
                    *left = left
                        // The warden may be anybody by now: what it sends beyond the request would
                        // fill a caller's buffer that was sized by it.
                        .checked_sub(frame.payload.len() as u64)
                        .ok_or_else(|| self.call.link.breach(ProtocolBreach::TooMuchData))?;
                }
                Ok(Some(frame.payload))
            }
            FrameKind::DataEnd => {
                self.done = true;
                Ok(None)
            }
            other => Err(self.call.link.breach(ProtocolBreach::Unexpected(other))),
        }
    }

    /// The rest of the file, or `None` if it is longer than `bound`.
    pub async fn collect(mut self, bound: usize) -> Result<Option<Vec<u8>>, WardenCallError> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            // Judged before the piece is kept, so that no more than the bound is ever held.
            if whole.len() + piece.len() > bound {
                return Ok(None);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(Some(whole))
    }
}

impl FileWriter {
    pub(super) async fn open(
        link: &Arc<ClientLink>,
        write: WriteRequest,
    ) -> Result<Self, WardenCallError> {
        let mut call = link.call(&WardenRequest::Write(write)).await?;
        match call.reply().await? {
            WardenReply::Done => Ok(Self { call }),
            _ => Err(link.breach(ProtocolBreach::WrongReply)),
        }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), WardenCallError> {
        for piece in bytes.chunks(MAX_DATA) {
            if let Err(lost) = self.call.stream.send(FrameKind::Data, piece).await {
                // A warden that stopped reading has said why, unless it is gone.
                self.call.frame().await?;
                return Err(lost.into());
            }
        }
        Ok(())
    }

    /// The file takes its place.
    pub async fn finish(mut self) -> Result<(), WardenCallError> {
        // When this fails the warden has stopped reading, and its answer says why.
        let _ = self.call.stream.send(FrameKind::DataEnd, &[]).await;
        match self.call.reply().await? {
            WardenReply::Done => Ok(()),
            _ => Err(self.call.link.breach(ProtocolBreach::WrongReply)),
        }
    }
}
