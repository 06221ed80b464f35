//! Bytes from socket to socket that never pass through our memory.
//!
//! Copying costs a relay as much as it costs sender and receiver together, so a plain tunnel that carries a
//! lot goes through a pipe instead (`splice`): the kernel hands its pages on. Pipes are the thread's, like
//! its buffer; a flow keeps one only while the receiver has not taken what is in it.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A pipe between two sockets and the number of bytes in it.
pub(crate) struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
    _counted: PipePermit,
}

/// The right to one of the pipes of all threads; dropping it gives it back.
struct PipePermit;

impl PipePermit {
    fn one_more() -> Option<Self> {
        let one_more = |open: usize| (open < MOST_PIPES).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()?;
        Some(Self)
    }
}

impl Drop for PipePermit {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// As much as a slow receiver may leave with us.
const CAPACITY: usize = 512 * 1024;
/// Pipes a thread keeps for the next flow.
const SPARE: usize = 8;

/// Pipes of all threads at once, two descriptors each. Beyond that bytes are copied, so that pipes never
/// take the descriptors that connections need.
const MOST_PIPES: usize = 64;

static OPEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PIPES: RefCell<Vec<SplicePipe>> = const { RefCell::new(Vec::new()) };
}

impl SplicePipe {
    /// `None` where the system has no pipe left: copying works too.
    pub(crate) fn take() -> Option<Self> {
        if let Some(spare) = PIPES.with_borrow_mut(Vec::pop) {
            return Some(spare);
        }
        let counted = PipePermit::one_more()?;
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
        // A smaller one is slower and as good.
        let _ = fcntl_setpipe_size(&write, CAPACITY);
        Some(Self {
            read,
            write,
            held: 0,
            _counted: counted,
        })
    }

    /// For the next flow, if nothing of this one is left in it.
    pub(crate) fn give_back(self) {
        // One with bytes left in it would hand them to another conversation's flow.
        if self.held == 0 {
            PIPES.with_borrow_mut(|spare| {
                if spare.len() < SPARE {
                    spare.push(self);
                }
            });
        }
    }

    /// Takes what the sender has; 0 is the end of it.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(from.poll_read_ready(cx))?;
            let moved = from.try_io(Interest::READABLE, || {
                Ok(splice(from, None, &self.write, None, CAPACITY, FLAGS)?)
            });
            match moved {
                // The runtime has cleared its readiness and the loop asks it to wake us.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(moved) => {
                    self.held += moved;
                    return Poll::Ready(Ok(moved));
                }
            }
        }
    }

    /// Hands all of it to the receiver.
    pub(crate) fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        to: &TcpStream,
    ) -> Poll<io::Result<()>> {
        while self.held > 0 {
            ready!(to.poll_write_ready(cx))?;
            let moved = to.try_io(Interest::WRITABLE, || {
                Ok(splice(&self.read, None, to, None, self.held, FLAGS)?)
            });
            match moved {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(moved) => self.held = self.held.saturating_sub(moved),
            }
        }
        Poll::Ready(Ok(()))
    }
}

const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);
