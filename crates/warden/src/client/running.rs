//! A command as it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::warden::ClientCall;
use super::{ProtocolBreach, WardenCallError};
use crate::mux::MuxStream;
use crate::protocol::frame::{FrameKind, WardenFrame};
use crate::protocol::{CommandEnd, MAX_DATA, STDIN_WINDOW, WindowSize, decode, encode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The command runs, under this number inside its sandbox.
    Started {
        pid: u32,
    },
    Out(Bytes),
    Err(Bytes),
    /// So many bytes of output were not kept while nobody read.
    Skipped(u64),
    /// Always the last.
    Ended(CommandEnd),
}

/// Dropping it ends the command and all it started, unless it is a detached one.
#[derive(Debug)]
pub struct RunningCommand {
    call: ClientCall,
    credit: Arc<StdinCredit>,
    finished: bool,
    /// When silence is a breach: its time is over, and so is the time to end it.
    overdue: Option<Instant>,
}

/// What a warden may take to end a command whose time is over, and to say so.
const OVERDUE_GRACE: Duration = Duration::from_secs(60);

/// The command's stdin. Writing waits while the command does not read.
#[derive(Clone, Debug)]
pub struct StdinStream {
    stream: MuxStream,
    credit: Arc<StdinCredit>,
}

/// How much more stdin may be on its way.
#[derive(Debug)]
struct StdinCredit {
    free: Semaphore,
    on_the_way: AtomicUsize,
}

impl RunningCommand {
    pub(super) fn new(call: ClientCall, timeout: Option<Duration>) -> Self {
        Self {
            call,
            credit: Arc::new(StdinCredit {
                free: Semaphore::new(STDIN_WINDOW),
                on_the_way: AtomicUsize::new(0),
            }),
            finished: false,
            overdue: timeout
                .and_then(|timeout| Instant::now().checked_add(timeout + OVERDUE_GRACE)),
        }
    }

    /// What happens next. After [`RunEvent::Ended`] or an error there is nothing more: `Ok(None)`.
    ///
    /// May be dropped and called again without losing anything.
    pub async fn next(&mut self) -> Result<Option<RunEvent>, WardenCallError> {
        if self.finished {
            return Ok(None);
        }
        let event = self.event().await;
        if matches!(event, Err(_) | Ok(RunEvent::Ended(_))) {
            self.finished = true;
            // Whoever still waits to write stdin would otherwise wait for credit that nobody gives
            // any more.
            self.credit.free.close();
        }
        event.map(Some)
    }

    pub fn stdin(&self) -> StdinStream {
        StdinStream {
            stream: self.call.stream.clone(),
            credit: Arc::clone(&self.credit),
        }
    }

    /// To the command's process group; in a persistent shell only SIGINT has a meaning.
    pub async fn signal(&self, signal: i32) -> Result<(), WardenCallError> {
        Ok(self
            .call
            .stream
            .send(FrameKind::Signal, &encode(&signal))
            .await?)
    }

    pub async fn resize(&self, size: WindowSize) -> Result<(), WardenCallError> {
        Ok(self
            .call
            .stream
            .send(FrameKind::Resize, &encode(&size))
            .await?)
    }

    /// Ends the link to a warden that was told to end this and does not.
    pub fn given_up(&self) -> WardenCallError {
        self.call.link.breach(ProtocolBreach::Unending)
    }

    async fn event(&mut self) -> Result<RunEvent, WardenCallError> {
        loop {
            let frame = self.frame().await?;
            let payload = frame.payload;
            let parsed = match frame.kind {
                FrameKind::Out => return Ok(RunEvent::Out(payload)),
                FrameKind::Err => return Ok(RunEvent::Err(payload)),
                FrameKind::Started => {
                    decode(&payload, "process id").map(|pid| RunEvent::Started { pid })
                }
                FrameKind::Skipped => decode(&payload, "count").map(RunEvent::Skipped),
                FrameKind::Ended => decode(&payload, "end").map(RunEvent::Ended),
                FrameKind::StdinTaken => match decode::<u32>(&payload, "count") {
                    Ok(taken) => {
                        self.taken(taken)?;
                        continue;
                    }
                    Err(malformed) => Err(malformed),
                },
                other => return Err(self.call.link.breach(ProtocolBreach::Unexpected(other))),
            };
            return parsed.map_err(|malformed| self.call.link.breach(malformed.into()));
        }
    }

    /// As long as something comes it is not overdue: a caller may have been slow to take it.
    async fn frame(&mut self) -> Result<WardenFrame, WardenCallError> {
        let Some(overdue) = self.overdue else {
            return self.call.frame().await;
        };
        let Ok(frame) = timeout_at(overdue, self.call.frame()).await else {
            return Err(self.given_up());
        };
        self.overdue = Some(overdue.max(Instant::now() + OVERDUE_GRACE));
        frame
    }

    fn taken(&self, taken: u32) -> Result<(), WardenCallError> {
        let taken = taken as usize;
        let credit = &self.credit;
        // Checked and taken in one step: a warden that claims more than was sent would be given
        // credit without end.
        let fits =
            credit
                .on_the_way
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |on_the_way| {
                    on_the_way.checked_sub(taken)
                });
        if fits.is_err() {
            return Err(self.call.link.breach(ProtocolBreach::StdinOvertaken));
        }
        credit.free.add_permits(taken);
        Ok(())
    }
}

impl StdinStream {
    /// Waits while the command does not read. Somebody has to poll [`RunningCommand::next`] meanwhile.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), WardenCallError> {
        // Never more than the window, for whose credit it would wait in vain; half of it, so that
        // one piece is taken while the next is on its way.
        for piece in bytes.chunks(MAX_DATA.min(STDIN_WINDOW / 2)) {
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let room = self.credit.free.acquire_many(length).await;
            // The permits come back when the warden says that the bytes were taken, not when they
            // were sent.
            room.map_err(|_| WardenCallError::LinkLost)?.forget();
            self.credit
                .on_the_way
                .fetch_add(piece.len(), Ordering::Relaxed);
            self.stream.send(FrameKind::Stdin, piece).await?;
        }
        Ok(())
    }

    /// The command reads the end of its input.
    pub async fn end(&self) -> Result<(), WardenCallError> {
        Ok(self.stream.send(FrameKind::StdinEnd, &[]).await?)
    }
}
