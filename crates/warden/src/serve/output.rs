//! The reading ends of a command's output.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::io::unix::AsyncFd;

use super::sys::watch;
use crate::protocol::MAX_DATA;
use crate::protocol::frame::FrameKind;

/// One pipe or terminal that a command writes to, until its end.
#[derive(Debug)]
pub(crate) struct OutputSource {
    fd: AsyncFd<OwnedFd>,
    pub(crate) kind: FrameKind,
    terminal: bool,
    mark: ReadMark,
}

/// The point where reading pauses, once the command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMark {
    None,
    /// After so many bytes.
    After(usize),
    /// Where there is nothing at the moment.
    WhenEmpty,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    Bytes(usize),
    /// At the mark: all that the command wrote by its end was read.
    Marked,
    /// Nobody can write any more.
    Closed,
}

impl OutputSource {
    /// A new pipe: the source, and the end to write to.
    pub(crate) fn pipe(kind: FrameKind) -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Fewer wake-ups for a command that writes a lot. The kernel may say no; then it is 64 KiB.
        let _ = fcntl_setpipe_size(&read, MAX_DATA);
        rustix::io::ioctl_fionbio(&read, true)?;
        let source = Self {
            fd: watch(read)?,
            kind,
            terminal: false,
            mark: ReadMark::None,
        };
        Ok((source, write))
    }

    /// The master side of a terminal.
    pub(crate) fn terminal(master: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self {
            fd: watch(master)?,
            kind: FrameKind::Out,
            terminal: true,
            mark: ReadMark::None,
        })
    }

    /// From here on only what was written by now is read. `shared`: others than the command may
    /// hold the writing end.
    pub(crate) fn set_mark(&mut self, shared: bool) {
        self.mark = match (self.terminal, shared) {
            // Its close comes by itself, after everything that was written.
            (true, false) => ReadMark::None,
            (true, true) => ReadMark::WhenEmpty,
            (false, _) => {
                // What a pipe holds now is what was written by now. Without this mark a background
                // process that goes on writing would keep its command from ending.
                let waiting = rustix::io::ioctl_fionread(&self.fd).unwrap_or(0);
                ReadMark::After(usize::try_from(waiting).unwrap_or(usize::MAX))
            }
        };
    }

    /// Goes on with whatever comes, after all.
    pub(crate) fn clear_mark(&mut self) {
        self.mark = ReadMark::None;
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<ReadOutcome> {
        let most = match self.mark {
            ReadMark::After(0) => return Poll::Ready(ReadOutcome::Marked),
            ReadMark::After(left) => left.min(buffer.len()),
            ReadMark::None | ReadMark::WhenEmpty => buffer.len(),
        };
        loop {
            match rustix::io::read(self.fd.as_fd(), &mut buffer[..most]) {
                Ok(0) => return Poll::Ready(ReadOutcome::Closed),
                Ok(read) => {
                    if let ReadMark::After(left) = &mut self.mark {
                        *left -= read;
                    }
                    return Poll::Ready(ReadOutcome::Bytes(read));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.mark != ReadMark::None => {
                    return Poll::Ready(ReadOutcome::Marked);
                }
                Err(Errno::AGAIN) => match ready!(self.fd.poll_read_ready(cx)) {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => return Poll::Ready(ReadOutcome::Closed),
                },
                // EIO is how a terminal says that nobody has its other side open.
                Err(_) => return Poll::Ready(ReadOutcome::Closed),
            }
        }
    }
}
