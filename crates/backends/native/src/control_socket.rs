//! The socket between the gateway and the process it started.
//!
//! Sequenced packets: a message arrives whole or not at all, with its descriptors, and an end of
//! file means that the other side is gone, however it went.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::MAX_MESSAGE;

/// More than any message carries: the plan comes with three.
const MAX_FDS: usize = 4;

/// One end of the socket between the gateway and a cage. A sandbox that is tied to its creator ends when the
/// gateway's end is closed.
#[derive(Debug)]
pub(crate) struct ControlSocket(OwnedFd);

impl ControlSocket {
    #[cfg(feature = "host")]
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(ours), theirs))
    }

    #[cfg(any(feature = "cage", feature = "host"))]
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub(crate) fn send<T: Serialize>(&self, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
        if bytes.len() > MAX_MESSAGE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.send_bytes(&bytes, fds)
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // The end may be closed; that is an error to return, not a signal to die of.
        sendmsg(
            &self.0,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// The next message, or `UnexpectedEof` when the other side is gone.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<(T, Vec<OwnedFd>)> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let (length, fds) = self.receive_bytes(&mut buffer)?;
        let message = postcard::from_bytes(&buffer[..length])
            .map_err(|source| io::Error::new(io::ErrorKind::InvalidData, source))?;
        Ok((message, fds))
    }

    pub(crate) fn receive_bytes(&self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let message = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.0,
                &mut [IoSliceMut::new(buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        let fds = ancillary
            .drain()
            .filter_map(|item| match item {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        // No message of ours is empty, so that nothing read means what it means on a stream.
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The rest of a message that was cut off is gone for good: half a plan must not be built.
        if message.flags.contains(ReturnFlags::TRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((message.bytes, fds))
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
