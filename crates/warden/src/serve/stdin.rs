//! What was sent for a command's stdin and is not taken yet.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use bytes::{Buf, Bytes};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::sys::watch;
use crate::mux::MuxStream;
use crate::protocol::frame::FrameKind;
use crate::protocol::{STDIN_WINDOW, encode};

/// End of input, as typed at a terminal.
const CONTROL_D: &[u8] = &[4];

/// The input of a run, as far as its command has not read it.
#[derive(Debug, Default)]
pub(crate) struct StdinQueue {
    waiting: RefCell<VecDeque<(Bytes, MuxStream)>>,
    length: Cell<usize>,
    ended: Cell<bool>,
    changed: Notify,
}

impl StdinQueue {
    /// Says no when more came than anybody was allowed to send. Twice the window, because a second
    /// caller may attach while the first one's bytes still wait.
    pub(crate) fn push(&self, bytes: Bytes, from: MuxStream) -> bool {
        let length = self.length.get() + bytes.len();
        if length > 2 * STDIN_WINDOW {
            return false;
        }
        self.length.set(length);
        self.waiting.borrow_mut().push_back((bytes, from));
        self.changed.notify_one();
        true
    }

    pub(crate) fn end(&self) {
        self.ended.set(true);
        self.changed.notify_one();
    }

    /// Feeds a pipe or a terminal until the end of the input, or until nobody reads.
    pub(crate) async fn feed(&self, fd: OwnedFd, terminal: bool) {
        let Ok(fd) = watch(fd) else { return };
        loop {
            // Taken out before the wait: a borrow that lives over one would panic when more comes
            // in.
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some((bytes, from)) => {
                    let length = bytes.len();
                    if !write_all(&fd, bytes).await {
                        break;
                    }
                    // Told when it is written and not when it came: that is what holds the sender
                    // back.
                    self.took(length, &from).await;
                }
                None if self.ended.get() => {
                    if terminal {
                        write_all(&fd, Bytes::from_static(CONTROL_D)).await;
                    }
                    break;
                }
                None => self.changed.notified().await,
            }
        }
        // Closed before the rest is swallowed, or the command would not see the end of its input.
        drop(fd);
        self.swallow().await;
    }

    /// Nobody reads any more: what comes is taken and forgotten, so that no writer waits for ever.
    pub(crate) async fn swallow(&self) {
        loop {
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some((bytes, from)) => self.took(bytes.len(), &from).await,
                None => self.changed.notified().await,
            }
        }
    }

    async fn took(&self, length: usize, from: &MuxStream) {
        self.length.set(self.length.get() - length);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        // A caller who is gone needs no credit.
        let _ = from.send(FrameKind::StdinTaken, &encode(&length)).await;
    }
}

/// Says whether somebody reads.
async fn write_all(fd: &AsyncFd<OwnedFd>, mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(fd.as_fd(), &bytes) {
            Ok(written) => bytes.advance(written),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match fd.writable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return false,
            },
            Err(_) => return false,
        }
    }
    true
}
