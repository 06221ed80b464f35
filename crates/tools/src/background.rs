//! Commands that go on after the call that started them.
//!
//! Each has a follower here: a task that reads its output into bounded memory, looks for patterns and
//! learns of its end. The command itself belongs to the sandbox. It goes on when the gateway goes away,
//! and a later one follows it again, because it was written down before it was started.
//!
//! A follower holds the sandbox, so that one with something at work in it is not let go for being
//! idle; but no longer than [`BackgroundSettings::longest_hold`], or a forgotten server would keep its
//! sandbox for ever. After that the process lives as long as its sandbox is used otherwise.

mod follow;
mod notice;
mod process;
mod rolling;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_policy::Cleared;
use hermetic_redact::Redactor;
use hermetic_sandbox::{CommandBond, RunError};
use hermetic_store::{ProcessRow, ProcessRows, RowOwner, StoreError};
use hermetic_types::{ConversationKey, RunId, SandboxId, SharedClock};
use hermetic_warden::client::{RunEvent, RunningCommand, WardenCallError};
use hermetic_warden::protocol::KillRequest;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Held;
use watch::NoticeLimit;

pub use notice::{NoticeKind, ProcessNotice};
pub(crate) use process::{BackgroundProcess, ProcessEnd, ProcessTerms};

/// All background processes of an installation. Clones share one state.
#[derive(Clone, Debug)]
pub struct BackgroundProcesses {
    shared: Arc<BackgroundState>,
}

#[derive(Clone, Copy, Debug)]
pub struct BackgroundSettings {
    /// How long a process that goes on keeps its sandbox from being let go for being idle.
    pub longest_hold: Duration,
    pub starts: BackgroundStarts,
}

/// Whether processes may be started that go on after their call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackgroundStarts {
    #[default]
    Allowed,
    /// The time of tools is bounded, and nobody counts that of processes.
    RefusedByBudget,
}

/// The way back to a sandbox after its link broke or the gateway was started anew.
pub trait SandboxReach: Send + Sync + fmt::Debug {
    /// The conversation's sandbox if it is still this one and alive. Never makes one. One that is only out
    /// of reach is waited for: nobody knows then that it is gone.
    fn living<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        sandbox: &'a SandboxId,
    ) -> BoxFuture<'a, Option<Held>>;
}

/// Where a sandbox ends with its link.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWayBack;

#[derive(Debug)]
struct BackgroundState {
    settings: BackgroundSettings,
    redactor: Redactor,
    rows: Option<ProcessRows>,
    reach: Arc<dyn SandboxReach>,
    clock: SharedClock,
    known: Mutex<HashMap<ConversationKey, Vec<Arc<BackgroundProcess>>>>,
    alarm: Mutex<NoticeLimit>,
    notices: mpsc::Sender<ProcessNotice>,
    unheard: Mutex<Option<mpsc::Receiver<ProcessNotice>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error(
        "{MOST_KNOWN_PROCESSES} background processes of this conversation are running; end one with process kill first"
    )]
    TooMany,
    #[error(
        "not started: there is a budget for the seconds of tools, which are not counted for background processes; run it in the foreground, in steps that end within the timeout"
    )]
    Uncounted,
    #[error("the process could not be written down, so it was not started")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Known processes of one conversation; those that ended and were not looked at longest go first.
const MOST_KNOWN_PROCESSES: usize = 64;
/// How long one that ended is known.
const KEPT: Duration = Duration::from_secs(1800);
/// Notices nobody has taken yet; whoever has more to tell waits.
const UNHEARD: usize = 256;
/// A process starts within a millisecond; a machine that swaps takes longer.
const PROCESS_START_TIMEOUT: Duration = Duration::from_secs(20);

impl BackgroundProcesses {
    /// Without rows nothing is found again after a restart.
    pub fn new(
        settings: BackgroundSettings,
        redactor: Redactor,
        rows: Option<ProcessRows>,
        reach: Arc<dyn SandboxReach>,
        clock: SharedClock,
    ) -> Self {
        let (notices, unheard) = mpsc::channel(UNHEARD);
        Self {
            shared: Arc::new(BackgroundState {
                settings,
                redactor,
                rows,
                reach,
                clock,
                known: Mutex::default(),
                alarm: Mutex::default(),
                notices,
                unheard: Mutex::new(Some(unheard)),
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
            }),
        }
    }

    /// Follows what an earlier gateway left running; how many there were.
    pub async fn take_up(&self) -> Result<usize, StoreError> {
        let Some(rows) = &self.shared.rows else {
            return Ok(0);
        };
        let found = rows.all(RowOwner::ThisGateway).await?;
        self.take_up_these(found).await
    }

    /// Follows these, which another gateway left running.
    pub async fn take_up_these(&self, found: Vec<ProcessRow>) -> Result<usize, StoreError> {
        let Some(rows) = &self.shared.rows else {
            return Ok(0);
        };
        let count = found.len();
        // Before any is followed: what fails half-way is tried again as a whole.
        let unreadable =
            |row: &&ProcessRow| serde_json::from_str::<ProcessTerms>(&row.terms).is_err();
        for row in found.iter().filter(unreadable) {
            rows.forget(&row.id).await?;
        }
        for row in found {
            let Ok(terms) = serde_json::from_str::<ProcessTerms>(&row.terms) else {
                continue;
            };
            let process = Arc::new(BackgroundProcess::new(
                row,
                terms,
                Arc::clone(&self.shared.clock),
            ));
            self.add(&process);
            self.follow(process, None);
        }
        Ok(count)
    }

    /// What there is to tell, in the order it happened. `None` if somebody listens already.
    pub fn notices(&self) -> Option<mpsc::Receiver<ProcessNotice>> {
        self.shared
            .unheard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// A notice is in safe hands: it need not be told again after a restart.
    pub async fn told(&self, notice: &ProcessNotice) -> Result<(), StoreError> {
        match (&self.shared.rows, &notice.what) {
            (Some(rows), NoticeKind::Ended { .. }) => rows.forget(&notice.process).await,
            _ => Ok(()),
        }
    }

    /// The conversation's sandbox is about to go: its processes go with it, and nobody wants to know.
    pub async fn forget(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        // The followers end before the sandbox does: they would tell of ends that nobody wants to
        // know.
        let gone = self.known().remove(conversation).unwrap_or_default();
        gone.iter().for_each(|process| process.let_be.cancel());
        match &self.shared.rows {
            Some(rows) => rows.forget_all_of(conversation).await,
            None => Ok(()),
        }
    }

    /// Whether something runs in the conversation that is young enough to hold it up: it does not start
    /// afresh by itself meanwhile.
    pub fn holds_up(&self, conversation: &ConversationKey) -> bool {
        let longest = self.shared.settings.longest_hold;
        let processes = self.of(conversation);
        processes
            .iter()
            .any(|process| process.end().is_none() && process.age() < longest)
    }

    /// Lets all of them be. They go on in their sandboxes, and [`Self::take_up`] finds them again.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Whether one may be started at all. Asked before a person is.
    pub(crate) fn may_start(&self) -> Result<(), StartError> {
        match self.shared.settings.starts {
            BackgroundStarts::Allowed => Ok(()),
            BackgroundStarts::RefusedByBudget => Err(StartError::Uncounted),
        }
    }

    pub(crate) async fn start(
        &self,
        held: Held,
        conversation: &ConversationKey,
        cleared: Cleared,
        terms: ProcessTerms,
    ) -> Result<Arc<BackgroundProcess>, StartError> {
        self.may_start()?;
        self.make_room(conversation)?;
        let row = ProcessRow {
            id: RunId::random(),
            conversation: conversation.clone(),
            sandbox: held.id().clone(),
            // Plain data of strings and flags always serialises.
            terms: serde_json::to_string(&terms).unwrap_or_default(),
            begun_at: self.shared.clock.now(),
        };
        // Written down before it starts: it goes on when the gateway does not, and the next one
        // finds it by this.
        if let Some(rows) = &self.shared.rows {
            rows.name(&row).await?;
        }
        let process = Arc::new(BackgroundProcess::new(
            row,
            terms,
            Arc::clone(&self.shared.clock),
        ));
        match begin(&held, &process.row.id, cleared).await {
            Ok((running, pid)) => {
                process.started(pid, running.stdin(), held.warden().clone());
                self.add(&process);
                self.follow(Arc::clone(&process), Some((running, held)));
                Ok(process)
            }
            Err(error) => {
                self.shared.strike_out(&process.row.id).await;
                Err(error.into())
            }
        }
    }

    pub(crate) fn of(&self, conversation: &ConversationKey) -> Vec<Arc<BackgroundProcess>> {
        let mut known = self.known();
        let Some(processes) = known.get_mut(conversation) else {
            return Vec::new();
        };
        processes.retain(|process| process.ended_ago().is_none_or(|ago| ago < KEPT));
        let all = processes.clone();
        if all.is_empty() {
            known.remove(conversation);
        }
        all
    }

    pub(crate) fn find(
        &self,
        conversation: &ConversationKey,
        session_id: &str,
    ) -> Option<Arc<BackgroundProcess>> {
        let found = self
            .of(conversation)
            .into_iter()
            .find(|process| process.session_id() == session_id)?;
        found.touch();
        Some(found)
    }

    /// Ends a process and everything it started; returns when it is seen to be over.
    pub(crate) async fn kill(&self, process: &BackgroundProcess) -> Result<(), WardenCallError> {
        let row = &process.row;
        // Where there is no way back, the way it is followed by is the only one.
        let warden = match process.warden() {
            Some(warden) => Some(warden),
            None => {
                let living = self.shared.reach.living(&row.conversation, &row.sandbox);
                living.await.map(|held| held.warden().clone())
            }
        };
        // Without a sandbox it is over, and the follower learns that by itself.
        if let Some(warden) = warden {
            // Noted before it is killed: its end may be seen, and told, before the answer comes.
            process.note_killed(true);
            if let Err(error) = warden.kill(KillRequest::Run(row.id.clone())).await {
                process.note_killed(false);
                return Err(error);
            }
        }
        process.over().await;
        Ok(())
    }

    fn follow(&self, process: Arc<BackgroundProcess>, link: Option<(RunningCommand, Held)>) {
        let shared = Arc::clone(&self.shared);
        let until = shared.stop.clone();
        self.shared.tasks.spawn(async move {
            let let_be = process.let_be.clone();
            tokio::select! {
                () = follow::follow(&shared, &process, link) => {}
                () = until.cancelled() => {}
                () = let_be.cancelled() => {}
            }
        });
    }

    fn make_room(&self, conversation: &ConversationKey) -> Result<(), StartError> {
        if self.of(conversation).len() < MOST_KNOWN_PROCESSES {
            return Ok(());
        }
        let mut known = self.known();
        let processes = known.entry(conversation.clone()).or_default();
        let oldest = processes
            .iter()
            .enumerate()
            .filter(|(_, process)| process.ended_ago().is_some())
            .min_by_key(|(_, process)| process.last_use())
            .map(|(at, _)| at);
        processes.remove(oldest.ok_or(StartError::TooMany)?);
        Ok(())
    }

    fn add(&self, process: &Arc<BackgroundProcess>) {
        self.known()
            .entry(process.row.conversation.clone())
            .or_default()
            .push(Arc::clone(process));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ConversationKey, Vec<Arc<BackgroundProcess>>>> {
        self.shared
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl BackgroundState {
    async fn strike_out(&self, id: &RunId) {
        if let Some(rows) = &self.rows
            && let Err(error) = rows.forget(id).await
        {
            // The next start looks for it in vain and strikes it out.
            tracing::warn!(process = %id, %error, "a process stays written down");
        }
    }
}

impl SandboxReach for NoWayBack {
    fn living<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: &'a SandboxId,
    ) -> BoxFuture<'a, Option<Held>> {
        future::ready(None).boxed()
    }
}

/// The name that the model knows a process by.
fn session_id(id: &RunId) -> String {
    format!("proc_{id}")
}

/// Up to the moment at which it runs.
async fn begin(
    held: &Held,
    id: &RunId,
    cleared: Cleared,
) -> Result<(RunningCommand, Option<u32>), RunError> {
    let mut running = held
        .start_as(id.clone(), cleared, CommandBond::Sandbox)
        .await?;
    let first = tokio::time::timeout(PROCESS_START_TIMEOUT, running.next()).await;
    match first {
        Ok(Ok(Some(RunEvent::Started { pid }))) => Ok((running, Some(pid))),
        Ok(Err(error)) => Err(error.into()),
        // It runs, and says so later.
        Ok(Ok(_)) | Err(_) => Ok((running, None)),
    }
}

#[cfg(test)]
mod tests {
    use hermetic_redact::RedactorSettings;
    use hermetic_types::SystemClock;

    use super::*;

    #[test]
    fn where_the_time_of_tools_is_bounded_nothing_goes_on_after_its_call() {
        let may_start = |starts| {
            let settings = BackgroundSettings {
                longest_hold: Duration::ZERO,
                starts,
            };
            let redactor = Redactor::new([], RedactorSettings::default());
            let reach = Arc::new(NoWayBack);
            let clock = SystemClock::shared();
            BackgroundProcesses::new(settings, redactor, None, reach, clock).may_start()
        };
        assert!(may_start(BackgroundStarts::Allowed).is_ok());
        let refused = may_start(BackgroundStarts::RefusedByBudget).unwrap_err();
        assert!(
            refused.to_string().contains("in the foreground"),
            "{refused}"
        );
    }
}
