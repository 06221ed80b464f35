//! A run that is known: who listens to it, what is kept of it, how it ended.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use hermetic_types::RunId;
use rustix::termios::tcsetwinsize;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::backlog::{Backlog, ReplayChunk};
use super::command_streams::winsize;
use super::process_tree::ProcessTree;
use super::pump;
use super::stdin::StdinQueue;
use crate::mux::MuxStream;
use crate::protocol::frame::{FrameKind, header};
use crate::protocol::{
    ByteString, CommandEnd, FailureKind, RunSummary, WardenFailure, WindowSize, encode,
};

/// A run that is known, going on or over.
#[derive(Debug)]
pub(crate) struct KnownRun {
    pub(crate) id: RunId,
    /// Shortened, for listings.
    pub(crate) argv: Vec<ByteString>,
    pub(crate) detach: bool,
    /// Whose processes these are. A command in a shell gets it when the shell is there.
    pub(crate) processes: OnceCell<Rc<ProcessTree>>,
    pub(crate) stdin: StdinQueue,
    pub(crate) setting: RunPlace,
    pub(super) terminal: Option<OwnedFd>,
    begun: Instant,
    /// What a later caller gets; only for runs that outlive theirs.
    backlog: RefCell<Option<Backlog>>,
    output: Cell<u64>,
    viewer: RefCell<Option<MuxStream>>,
    viewer_changed: Notify,
    /// How many have picked it up.
    picked_up: Cell<u64>,
    pub(crate) end_asked: Notify,
    pub(crate) interrupted: Notify,
    over: RefCell<Option<Result<CommandEnd, WardenFailure>>>,
    over_changed: Notify,
}

/// The place where a command runs, which decides what a signal to it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPlace {
    /// In processes of its own.
    Alone,
    /// In a shell that others will use after it.
    Shell,
}

impl KnownRun {
    pub(crate) fn new(
        id: RunId,
        argv: Vec<ByteString>,
        detach: bool,
        setting: RunPlace,
        viewer: MuxStream,
    ) -> Self {
        Self {
            id,
            argv: shortened(argv),
            detach,
            processes: OnceCell::new(),
            stdin: StdinQueue::default(),
            setting,
            terminal: None,
            begun: Instant::now(),
            backlog: RefCell::new(detach.then(Backlog::default)),
            output: Cell::new(0),
            viewer: RefCell::new(Some(viewer)),
            viewer_changed: Notify::new(),
            picked_up: Cell::new(0),
            end_asked: Notify::new(),
            interrupted: Notify::new(),
            over: RefCell::new(None),
            over_changed: Notify::new(),
        }
    }

    /// In processes of its own, perhaps at a terminal.
    pub(super) fn in_processes_of(
        self,
        processes: &Rc<ProcessTree>,
        terminal: Option<OwnedFd>,
    ) -> Self {
        Self {
            processes: OnceCell::from(Rc::clone(processes)),
            terminal,
            ..self
        }
    }

    pub(crate) async fn until_over(&self) {
        loop {
            let mut changed = std::pin::pin!(self.over_changed.notified());
            // Listening before looking: an end between the two would be waited for in vain.
            changed.as_mut().enable();
            if self.is_over() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.processes.get()?.pid()
    }

    pub(super) fn signal(&self, number: i32) {
        match self.setting {
            RunPlace::Alone => {
                if let Some(processes) = self.processes.get() {
                    processes.signal(number);
                }
            }
            RunPlace::Shell => self.interrupted.notify_one(),
        }
    }

    pub(crate) async fn send_started(&self, pid: u32) {
        let payload = encode(&pid);
        let mut frame = header(FrameKind::Started, payload.len()).to_vec();
        frame.extend_from_slice(&payload);
        self.send(&frame).await;
    }

    pub(crate) async fn send_skipped(&self, count: u64) {
        let payload = encode(&count);
        let mut frame = header(FrameKind::Skipped, payload.len()).to_vec();
        frame.extend_from_slice(&payload);
        self.send(&frame).await;
    }

    /// Output that comes from elsewhere than the run's own pipes.
    pub(crate) async fn pass_on(&self, kind: FrameKind, bytes: &[u8]) {
        self.keep(kind, bytes);
        let mut frame = header(kind, bytes.len()).to_vec();
        frame.extend_from_slice(bytes);
        self.send(&frame).await;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    pub(crate) fn summary(&self) -> RunSummary {
        RunSummary {
            id: self.id.clone(),
            argv: self.argv.clone(),
            pid: self.pid(),
            detached: self.detach,
            age: self.begun.elapsed(),
            output: self.output.get(),
            ended: self.over.borrow().as_ref().and_then(|end| end.clone().ok()),
        }
    }

    pub(crate) fn viewer(&self) -> Option<MuxStream> {
        self.viewer.borrow().clone()
    }

    pub(crate) fn keep(&self, kind: FrameKind, bytes: &[u8]) {
        self.output.set(self.output.get() + bytes.len() as u64);
        if let Some(backlog) = &mut *self.backlog.borrow_mut() {
            backlog.push(kind, bytes);
        }
    }

    /// A frame to whoever listens, waiting until he takes it or is no longer the one.
    pub(crate) async fn send(&self, frame: &[u8]) {
        let Some(viewer) = self.viewer() else { return };
        let sent = std::pin::pin!(viewer.write_all(frame));
        let changed = std::pin::pin!(self.viewer_changed.notified());
        // A reader who is superseded while his window is full would otherwise hold the command's
        // output up for ever.
        if let futures::future::Either::Left((Err(_), _)) =
            futures::future::select(sent, changed).await
        {
            self.caller_left(&viewer);
        }
    }

    pub(crate) async fn finish(&self, end: Result<CommandEnd, WardenFailure>) {
        // Set before it is told: the caller's leaving, which may follow at once, must not end a run
        // that is over.
        self.over.replace(Some(end.clone()));
        self.over_changed.notify_waiters();
        if let Some(viewer) = self.viewer() {
            pump::tell_end(&viewer, &end).await;
        }
        self.viewer.replace(None);
    }

    pub(super) fn caller_left(&self, stream: &MuxStream) {
        let was_listening = self.viewer().is_some_and(|viewer| viewer.is(stream));
        if was_listening {
            self.viewer.replace(None);
            self.viewer_changed.notify_waiters();
            if !self.detach && !self.is_over() {
                self.end_asked.notify_one();
            }
        }
    }

    pub(super) fn resize(&self, size: WindowSize) {
        if let Some(terminal) = &self.terminal {
            // A terminal that is gone has no size.
            let _ = tcsetwinsize(terminal, winsize(size));
        }
    }

    /// Takes the place of the caller to come; whoever had it is told. Gives his number among those who came.
    pub(super) fn dismiss_viewer(&self) -> u64 {
        let turn = self.picked_up.get() + 1;
        self.picked_up.set(turn);
        let Some(earlier) = self.viewer.replace(None) else {
            return turn;
        };
        self.viewer_changed.notify_waiters();
        // In a task of its own: the earlier caller may read nothing any more, and the new one does
        // not wait for him.
        spawn_local(async move {
            let _ = earlier
                .send(FrameKind::Failed, &encode(&superseded()))
                .await;
            let _ = earlier.close().await;
        });
        turn
    }

    /// Whether nobody came after the one with this number.
    pub(super) fn is_latest(&self, turn: u64) -> bool {
        self.picked_up.get() == turn
    }

    pub(super) fn set_viewer(&self, viewer: MuxStream) {
        self.viewer.replace(Some(viewer));
    }

    /// What was kept from this byte on, and where it ends.
    pub(super) fn kept_from(&self, from: u64) -> (Vec<ReplayChunk>, u64) {
        match &*self.backlog.borrow() {
            Some(backlog) => (backlog.replay(from), backlog.total()),
            None => (Vec::new(), from),
        }
    }

    /// How it ended, if it has.
    pub(super) fn end(&self) -> Option<Result<CommandEnd, WardenFailure>> {
        self.over.borrow().clone()
    }
}

/// What somebody hears whose run another one has now.
pub(super) fn superseded() -> WardenFailure {
    WardenFailure {
        kind: FailureKind::Superseded,
        errno: None,
        text: "another caller attached to this run".into(),
    }
}

/// As much of a command as a listing shows; a listing must fit into one answer.
fn shortened(mut argv: Vec<ByteString>) -> Vec<ByteString> {
    argv.truncate(8);
    for word in &mut argv {
        word.0.truncate(128);
        word.0.shrink_to_fit();
    }
    argv
}
