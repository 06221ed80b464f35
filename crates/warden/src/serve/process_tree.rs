//! One keeper, the command below it, and what became of them.

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::sys::{KeeperReport, StartStage};
use super::tree;
use crate::protocol::{CommandUsage, ExitState, FailureKind, WardenFailure};

/// After this long, what is still there cannot be killed: it hangs in the kernel.
const TREE_KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The processes of one command: its keeper and everything below it.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    pub(crate) keeper: u32,
    started: OnceCell<Result<u32, WardenFailure>>,
    exit: OnceCell<CommandExit>,
    gone: Cell<bool>,
    changed: Notify,
}

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandExit {
    pub(crate) status: ExitState,
    pub(crate) usage: CommandUsage,
    /// It left others behind.
    pub(crate) others: bool,
}

impl ProcessTree {
    pub(crate) fn new(keeper: u32) -> Self {
        Self {
            keeper,
            started: OnceCell::new(),
            exit: OnceCell::new(),
            gone: Cell::new(false),
            changed: Notify::new(),
        }
    }

    pub(crate) fn hear(&self, record: &KeeperReport) {
        // A second record of the same kind would be a lie; the first one counts.
        let _ = match record.kind {
            0 => self.started.set(Ok(record.detail)).is_ok(),
            1 => self
                .started
                .set(Err(not_started(
                    StartStage::from_number(record.detail),
                    record.status,
                )))
                .is_ok(),
            _ => self.exit.set(CommandExit::from(record)).is_ok(),
        };
        self.changed.notify_waiters();
    }

    /// The keeper was reaped. What it did not tell is not known.
    pub(crate) fn lose(&self) {
        let _ = self.started.set(Err(WardenFailure {
            kind: FailureKind::System,
            errno: None,
            text: "the command's keeper was killed".into(),
        }));
        let _ = self.exit.set(CommandExit {
            status: ExitState::Unknown,
            usage: CommandUsage::default(),
            others: false,
        });
        self.gone.set(true);
        self.changed.notify_waiters();
    }

    pub(crate) async fn started(&self) -> Result<u32, WardenFailure> {
        self.until(|processes| processes.started.get().cloned())
            .await
    }

    pub(crate) async fn ended(&self) -> CommandExit {
        self.until(|processes| processes.exit.get().copied()).await
    }

    /// Nothing of it is left.
    pub(crate) async fn gone(&self) {
        self.until(|processes| processes.gone.get().then_some(()))
            .await;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    pub(crate) fn exit(&self) -> Option<CommandExit> {
        self.exit.get().copied()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.started.get()?.as_ref().ok().copied()
    }

    /// To the command's own process group, while the command lives.
    pub(crate) fn signal(&self, number: i32) {
        let (Some(pid), None) = (self.pid(), self.exit.get()) else {
            return;
        };
        let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let (Some(group), Some(signal)) = (group, Signal::from_named_raw(number)) {
            // A command that is gone a moment ago needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Ends everything: asks with SIGTERM, waits for `grace`, then kills until nothing is left.
    pub(crate) async fn end(&self, grace: Duration) {
        if !grace.is_zero() && !self.is_gone() {
            // Everything below and not the command's group: what left its session is asked as well.
            tree::signal(&tree::below(self.keeper, &HashSet::new()), Signal::TERM);
            if timeout(grace, self.gone()).await.is_ok() {
                return;
            }
        }
        let deadline = Instant::now() + TREE_KILL_TIMEOUT;
        let mut pause = Duration::from_micros(200);
        while !self.is_gone() && Instant::now() < deadline {
            // Until the keeper is gone and not until nothing is found: a process that is being
            // handed to a new parent is met by no walk.
            tree::sweep(self.keeper, &HashSet::new());
            // One that was stopped by its own command could not reap.
            tree::signal_child(self.keeper, std::process::id(), Signal::CONT);
            let _ = timeout(pause, self.gone()).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        if !self.is_gone() {
            sleep(Duration::ZERO).await;
        }
    }

    async fn until<T>(&self, ready: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(value) = ready(self) {
                return value;
            }
            changed.await;
        }
    }
}

impl From<&KeeperReport> for CommandExit {
    fn from(record: &KeeperReport) -> Self {
        let status = record.status;
        let status = if libc::WIFEXITED(status) {
            ExitState::Exited(libc::WEXITSTATUS(status))
        } else {
            ExitState::Signalled(libc::WTERMSIG(status))
        };
        Self {
            status,
            usage: CommandUsage {
                user: Duration::from_micros(record.user_us),
                system: Duration::from_micros(record.system_us),
                max_rss_bytes: record.max_rss_kib * 1024,
            },
            others: record.detail != 0,
        }
    }
}

fn not_started(stage: StartStage, errno: i32) -> WardenFailure {
    let error = std::io::Error::from_raw_os_error(errno);
    let (kind, what) = match (stage, errno) {
        (StartStage::WorkingDirectory, _) => (FailureKind::WorkingDirectory, "enter the directory"),
        (StartStage::Exec, libc::ENOENT) => (FailureKind::ProgramNotFound, "find the program"),
        (StartStage::Exec, _) => (FailureKind::ProgramNotStarted, "start the program"),
        (StartStage::Clone, _) => (FailureKind::System, "start a process"),
        (StartStage::Terminal, _) => (FailureKind::System, "give it a terminal"),
        (StartStage::Descriptors, _) => (FailureKind::System, "place its descriptors"),
    };
    WardenFailure {
        kind,
        errno: Some(errno),
        text: format!("cannot {what}: {error}"),
    }
}
