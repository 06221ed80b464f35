//! One background process, as far as we know it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_redact::{Redacted, Redactor};
use hermetic_store::ProcessRow;
use hermetic_types::SharedClock;
use hermetic_warden::client::{StdinStream, WardenServices};
use hermetic_warden::protocol::{CommandEnd, ExitState};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::rolling::RollingOutput;
use crate::ProcessTell;

#[derive(Debug)]
pub(crate) struct BackgroundProcess {
    pub(crate) row: ProcessRow,
    pub(crate) terms: ProcessTerms,
    clock: SharedClock,
    state: Mutex<ProcessState>,
    ended: watch::Sender<bool>,
    /// Nobody wants to know about it any more.
    pub(super) let_be: CancellationToken,
}

/// What it is and who wants to know, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessTerms {
    pub(crate) command: String,
    pub(crate) tell: ProcessTell,
    /// Whom to tell, in words of whoever keeps the conversation.
    pub(crate) origin: Option<String>,
}

#[derive(Debug)]
struct ProcessState {
    pid: Option<u32>,
    output: RollingOutput,
    stdin: Option<StdinStream>,
    /// The way it is followed by, as long as that is there.
    warden: Option<WardenServices>,
    end: Option<(ProcessEnd, Instant)>,
    /// The model wanted its end.
    killed: bool,
    last_use: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Exited(i32),
    /// Nobody knows how; the words say why.
    Lost(&'static str),
}

impl BackgroundProcess {
    pub(super) fn new(row: ProcessRow, terms: ProcessTerms, clock: SharedClock) -> Self {
        Self {
            row,
            terms,
            clock,
            state: Mutex::new(ProcessState {
                pid: None,
                output: RollingOutput::default(),
                stdin: None,
                warden: None,
                end: None,
                killed: false,
                last_use: Instant::now(),
            }),
            ended: watch::Sender::new(false),
            let_be: CancellationToken::new(),
        }
    }

    pub(crate) fn session_id(&self) -> String {
        super::session_id(&self.row.id)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.state().pid
    }

    pub(crate) fn end(&self) -> Option<ProcessEnd> {
        self.state().end.map(|(end, _)| end)
    }

    /// Whether it ended because the model wanted it.
    pub(crate) fn was_killed(&self) -> bool {
        self.state().killed
    }

    pub(super) fn note_killed(&self, killed: bool) {
        self.state().killed = killed;
    }

    /// Waits for its end.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender is ours, so it is not gone before.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    pub(crate) fn age(&self) -> Duration {
        self.clock.now().since(self.row.begun_at)
    }

    pub(crate) fn output(&self, redactor: &Redactor) -> Redacted<String> {
        self.state().output.text(redactor)
    }

    /// Absent when it has ended, or cannot be reached at the moment.
    pub(crate) fn stdin(&self) -> Option<StdinStream> {
        self.state().stdin.clone()
    }

    pub(crate) fn touch(&self) {
        self.state().last_use = Instant::now();
    }

    pub(super) fn last_use(&self) -> Instant {
        self.state().last_use
    }

    pub(super) fn ended_ago(&self) -> Option<Duration> {
        self.state().end.map(|(_, at)| at.elapsed())
    }

    pub(super) fn warden(&self) -> Option<WardenServices> {
        self.state().warden.clone()
    }

    pub(super) fn started(&self, pid: Option<u32>, stdin: StdinStream, warden: WardenServices) {
        let mut state = self.state();
        state.pid = pid.or(state.pid);
        state.stdin = Some(stdin);
        state.warden = Some(warden);
    }

    pub(super) fn set_pid(&self, pid: u32) {
        self.state().pid = Some(pid);
    }

    /// How much it had written after this.
    pub(super) fn wrote(&self, bytes: &[u8]) -> u64 {
        let mut state = self.state();
        state.output.push(bytes);
        state.output.total()
    }

    pub(super) fn lost_output(&self, count: u64) {
        self.state().output.skip(count);
    }

    pub(super) fn read_so_far(&self) -> u64 {
        self.state().output.total()
    }

    pub(super) fn unplugged(&self) {
        let mut state = self.state();
        state.stdin = None;
        state.warden = None;
    }

    pub(super) fn ended(&self, end: ProcessEnd) {
        {
            let mut state = self.state();
            state.stdin = None;
            state.warden = None;
            state.end = Some((end, Instant::now()));
        }
        // After the lock was let go, which whoever is told takes at once.
        self.ended.send_replace(true);
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessEnd {
    /// As a shell would say it; none where nobody knows.
    pub(crate) fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Lost(_) => None,
        }
    }
}

impl From<&CommandEnd> for ProcessEnd {
    fn from(ended: &CommandEnd) -> Self {
        match ended.status {
            ExitState::Exited(code) => Self::Exited(code),
            ExitState::Signalled(signal) => Self::Exited(128 + signal),
            ExitState::Unknown => Self::Lost("its supervisor was killed"),
        }
    }
}
