//! A command as it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::warden::Call;
use super::{Breach, CallError};
use crate::mux::MuxStream;
use crate::protocol::frame::{Frame, Kind};
use crate::protocol::{Ended, MAX_DATA, STDIN_WINDOW, WindowSize, decode, encode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command runs, under this number inside its sandbox.
    Started {
        pid: u32,
    },
    Out(Bytes),
    Err(Bytes),
    /// So many bytes of output were not kept while nobody read.
    Skipped(u64),
    /// Always the last.
    Ended(Ended),
}

/// Dropping it ends the command and all it started, unless it is a detached one.
#[derive(Debug)]
pub struct Running {
    call: Call,
    credit: Arc<Credit>,
    finished: bool,
    /// When silence is a breach: its time is over, and so is the time to end it.
    overdue: Option<Instant>,
}

/// What a warden may take to end a command whose time is over, and to say so.
const GRACE: Duration = Duration::from_secs(60);

/// The command's stdin. Writing waits while the command does not read.
#[derive(Clone, Debug)]
pub struct Stdin {
    stream: MuxStream,
    credit: Arc<Credit>,
}

/// How much more stdin may be on its way.
#[derive(Debug)]
struct Credit {
    free: Semaphore,
    on_the_way: AtomicUsize,
}

impl Running {
    pub(super) fn new(call: Call, timeout: Option<Duration>) -> Self {
        Self {
            call,
            credit: Arc::new(Credit {
                free: Semaphore::new(STDIN_WINDOW),
                on_the_way: AtomicUsize::new(0),
            }),
            finished: false,
            overdue: timeout.and_then(|timeout| Instant::now().checked_add(timeout + GRACE)),
        }
    }

    /// What happens next. After [`Event::Ended`] or an error there is nothing more: `Ok(None)`.
    ///
    /// May be dropped and called again without losing anything.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        if self.finished {
            return Ok(None);
        }
        let event = self.event().await;
        if matches!(event, Err(_) | Ok(Event::Ended(_))) {
            self.finished = true;
            self.credit.free.close();
        }
        event.map(Some)
    }

    pub fn stdin(&self) -> Stdin {
        Stdin {
            stream: self.call.stream.clone(),
            credit: Arc::clone(&self.credit),
        }
    }

    /// To the command's process group; in a persistent shell only SIGINT has a meaning.
    pub async fn signal(&self, signal: i32) -> Result<(), CallError> {
        Ok(self
            .call
            .stream
            .send(Kind::Signal, &encode(&signal))
            .await?)
    }

    pub async fn resize(&self, size: WindowSize) -> Result<(), CallError> {
        Ok(self.call.stream.send(Kind::Resize, &encode(&size)).await?)
    }

    /// Ends the link to a warden that was told to end this and does not.
    pub fn given_up(&self) -> CallError {
        self.call.link.breach(Breach::Unending)
    }

    async fn event(&mut self) -> Result<Event, CallError> {
        loop {
            let frame = self.frame().await?;
            let payload = frame.payload;
            let parsed = match frame.kind {
                Kind::Out => return Ok(Event::Out(payload)),
                Kind::Err => return Ok(Event::Err(payload)),
                Kind::Started => decode(&payload, "process id").map(|pid| Event::Started { pid }),
                Kind::Skipped => decode(&payload, "count").map(Event::Skipped),
                Kind::Ended => decode(&payload, "end").map(Event::Ended),
                Kind::StdinTaken => match decode::<u32>(&payload, "count") {
                    Ok(taken) => {
                        self.taken(taken)?;
                        continue;
                    }
                    Err(malformed) => Err(malformed),
                },
                other => return Err(self.call.link.breach(Breach::Unexpected(other))),
            };
            return parsed.map_err(|malformed| self.call.link.breach(malformed.into()));
        }
    }

    /// As long as something comes it is not overdue: a caller may have been slow to take it.
    async fn frame(&mut self) -> Result<Frame, CallError> {
        let Some(overdue) = self.overdue else {
            return self.call.frame().await;
        };
        let Ok(frame) = timeout_at(overdue, self.call.frame()).await else {
            return Err(self.given_up());
        };
        self.overdue = Some(overdue.max(Instant::now() + GRACE));
        frame
    }

    fn taken(&self, taken: u32) -> Result<(), CallError> {
        let taken = taken as usize;
        let credit = &self.credit;
        let fits =
            credit
                .on_the_way
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |on_the_way| {
                    on_the_way.checked_sub(taken)
                });
        if fits.is_err() {
            return Err(self.call.link.breach(Breach::StdinOvertaken));
        }
        credit.free.add_permits(taken);
        Ok(())
    }
}

impl Stdin {
    /// Waits while the command does not read. Somebody has to poll [`Running::next`] meanwhile.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), CallError> {
        for piece in bytes.chunks(MAX_DATA.min(STDIN_WINDOW / 2)) {
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let room = self.credit.free.acquire_many(length).await;
            room.map_err(|_| CallError::LinkLost)?.forget();
            self.credit
                .on_the_way
                .fetch_add(piece.len(), Ordering::Relaxed);
            self.stream.send(Kind::Stdin, piece).await?;
        }
        Ok(())
    }

    /// The command reads the end of its input.
    pub async fn end(&self) -> Result<(), CallError> {
        Ok(self.stream.send(Kind::StdinEnd, &[]).await?)
    }
}
