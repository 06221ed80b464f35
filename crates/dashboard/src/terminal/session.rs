//! One terminal, from its shell's start to its end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use hermetic_session::SandboxLease;
use hermetic_warden::client::{RunEvent, RunningCommand};
use hermetic_warden::protocol::{ExitState, WindowSize};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::bounds::{LONGEST_SILENCE, SeatGuard, TerminalHandle, TerminalOrder, lock};
use super::frame::TerminalFrame;
use super::{OpenedShell, TerminalSize};
use crate::access::{Viewer, is_still_in};
use crate::acts;
use crate::state::SharedState;

/// Frames that wait for a browser. A shell that writes more waits itself: its pipe is full.
const WAITING_FRAMES: usize = 8;

/// Orders that wait for the terminal, all of them small.
const WAITING_ORDERS: usize = 16;

/// How often it is looked whether whoever opened it is still let in.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long the last frame waits for room.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An open terminal.
pub(super) struct TerminalSession {
    shell: RunningCommand,
    /// What it runs in is kept until it is over.
    _lease: SandboxLease,
    seat: SeatGuard,
    frames: mpsc::Sender<Bytes>,
    orders: mpsc::Receiver<TerminalOrder>,
    handle: TerminalHandle,
    /// By which it is found out whether they are still in.
    entry: HeaderMap,
    viewer: Viewer,
    /// As the audit record names it.
    what: String,
}

/// Why a terminal is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminalEnd {
    Exited(ExitState),
    Closed,
    Left,
    Silent,
    SignedOut,
    Lost,
    Stopping,
}

impl TerminalSession {
    pub(super) fn new(
        opened: OpenedShell,
        seat: SeatGuard,
        entry: HeaderMap,
        viewer: Viewer,
        what: String,
    ) -> (Self, mpsc::Receiver<Bytes>) {
        let (frames, shown) = mpsc::channel(WAITING_FRAMES);
        let (sender, orders) = mpsc::channel(WAITING_ORDERS);
        let handle = TerminalHandle {
            stdin: opened.shell.stdin(),
            orders: sender,
            typing: Arc::default(),
            typed_at: Arc::new(std::sync::Mutex::new(Instant::now())),
        };
        seat.started(handle.clone());
        let session = Self {
            shell: opened.shell,
            _lease: opened.lease,
            seat,
            frames,
            orders,
            handle,
            entry,
            viewer,
            what,
        };
        (session, shown)
    }

    /// Carries output to the browser until the shell or its reader is gone, and writes down that it is over.
    pub(super) async fn serve(mut self, state: SharedState, stop: CancellationToken) {
        let opened = TerminalFrame::Opened.written(self.seat.id().as_str().as_bytes());
        // There is room: nothing was sent yet.
        let _ = self.frames.try_send(opened);
        let end = self.carry(&state, &stop).await;
        let what = format!("{} {}", self.what, end.name());
        if acts::record(&state, &self.viewer, "close_terminal", &what).is_err() {
            tracing::error!(
                what,
                "the end of a terminal could not be written into the audit record"
            );
        }
        // Last, so that a gateway which stops has written it down when this answer is over. Behind what the
        // browser has not taken yet; one that takes nothing does not hear it.
        let last = TerminalFrame::Ended.written(end.words().as_bytes());
        let _ = timeout(LAST_WORDS, self.frames.send(last)).await;
    }

    async fn carry(&mut self, state: &SharedState, stop: &CancellationToken) -> TerminalEnd {
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        // A look that took long is not made up for by several at once.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting: Option<Bytes> = None;
        loop {
            let silent_at = *lock(&self.handle.typed_at) + LONGEST_SILENCE;
            tokio::select! {
                // What the shell writes comes last: one that writes without pause must not keep an
                // order or a look waiting.
                biased;
                () = stop.cancelled() => return TerminalEnd::Stopping,
                () = self.frames.closed() => return TerminalEnd::Left,
                Some(order) = self.orders.recv() => match order {
                    TerminalOrder::Close => return TerminalEnd::Closed,
                    TerminalOrder::Resize(size) => {
                        if self.shell.resize(window(size)).await.is_err() {
                            return TerminalEnd::Lost;
                        }
                    }
                },
                _ = looks.tick() => {
                    if !is_still_in(state, &self.entry, &self.viewer).await {
                        return TerminalEnd::SignedOut;
                    }
                    // A reader that takes nothing needs no sign of life from us.
                    let _ = self.frames.try_send(TerminalFrame::Pulse.written(b""));
                }
                () = sleep_until(silent_at) => {
                    // Somebody may have typed meanwhile.
                    if lock(&self.handle.typed_at).elapsed() >= LONGEST_SILENCE {
                        return TerminalEnd::Silent;
                    }
                }
                room = self.frames.reserve(), if waiting.is_some() => {
                    let (Ok(room), Some(frame)) = (room, waiting.take()) else {
                        return TerminalEnd::Left;
                    };
                    room.send(frame);
                }
                // Not read while something waits for the browser: the shell is held up instead.
                event = self.shell.next(), if waiting.is_none() => match event {
                    Ok(Some(RunEvent::Out(bytes) | RunEvent::Err(bytes))) => {
                        waiting = Some(TerminalFrame::Output.written(&bytes));
                    }
                    Ok(Some(RunEvent::Ended(ended))) => return TerminalEnd::Exited(ended.status),
                    Ok(Some(RunEvent::Started { .. } | RunEvent::Skipped(_))) => {}
                    Ok(None) | Err(_) => return TerminalEnd::Lost,
                },
            }
        }
    }
}

impl TerminalEnd {
    /// For the audit record.
    const fn name(self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::Closed => "closed",
            Self::Left => "left",
            Self::Silent => "silent",
            Self::SignedOut => "signed_out",
            Self::Lost => "lost",
            Self::Stopping => "stopping",
        }
    }

    /// For whoever looks at it.
    fn words(self) -> String {
        match self {
            Self::Exited(ExitState::Exited(code)) => format!("The shell ended with {code}."),
            Self::Exited(_) => "The shell was ended by a signal.".to_owned(),
            Self::Closed | Self::Left => "Closed.".to_owned(),
            Self::Silent => "Closed, because nobody typed for a quarter of an hour.".to_owned(),
            Self::SignedOut => "Closed, because you are not signed in any more.".to_owned(),
            Self::Lost => "The sandbox ended.".to_owned(),
            Self::Stopping => "The gateway stops.".to_owned(),
        }
    }
}

fn window(size: TerminalSize) -> WindowSize {
    WindowSize {
        columns: size.columns(),
        rows: size.rows(),
    }
}
