//! What the warden knows of: its process trees, runs, shells and clients.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, wait};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::holder::HolderTable;
use super::oom::OomCounter;
use super::process_tree::ProcessTree;
use super::runs::RunTable;
use super::shell::ShellTable;
use super::sys::{KeeperReport, StartPlan, start, watch};
use super::tree;
use crate::protocol::{ByteString, FailureKind, WardenFailure};

/// All that one warden knows: its process trees, runs, shells and clients.
#[derive(Debug)]
pub(crate) struct WardenState {
    env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    is_init: bool,
    pub(crate) oom: OomCounter,
    pub(crate) holders: HolderTable,
    pub(crate) runs: RunTable,
    pub(crate) shells: ShellTable,
    pub(crate) listeners: Cell<u32>,
    pub(crate) relays: Cell<usize>,
    pub(crate) born: Instant,
    report: OwnedFd,
    reports: RefCell<Option<Rc<AsyncFd<OwnedFd>>>>,
    next_slot: Cell<u64>,
    process_trees: RefCell<HashMap<u64, Rc<ProcessTree>>>,
    clients: Cell<u32>,
    last_use: Cell<Instant>,
    stopping: Cell<bool>,
    stop: Notify,
}

/// The command to start, and its surroundings.
#[derive(Debug)]
pub(crate) struct StartRequest<'a> {
    pub(crate) argv: &'a [ByteString],
    pub(crate) env: &'a [(ByteString, ByteString)],
    pub(crate) cwd: Option<&'a ByteString>,
    pub(crate) descriptors: Vec<(std::os::fd::BorrowedFd<'a>, i32)>,
    pub(crate) terminal: bool,
}

impl WardenState {
    pub(crate) fn new(
        env: Vec<(OsString, OsString)>,
        cwd: PathBuf,
        is_init: bool,
        oom_counter: Option<OwnedFd>,
    ) -> io::Result<(Self, OwnedFd)> {
        // Keepers write to it and may wait there; we read without waiting.
        let (reports, report) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reports, true)?;
        let warden = Self {
            env,
            cwd,
            is_init,
            oom: OomCounter::new(oom_counter),
            holders: HolderTable::default(),
            runs: RunTable::default(),
            shells: ShellTable::default(),
            listeners: Cell::new(0),
            relays: Cell::new(0),
            born: Instant::now(),
            report,
            reports: RefCell::new(None),
            next_slot: Cell::new(1),
            process_trees: RefCell::default(),
            clients: Cell::new(0),
            last_use: Cell::new(Instant::now()),
            stopping: Cell::new(false),
            stop: Notify::new(),
        };
        Ok((warden, reports))
    }

    /// What `~` stands for.
    pub(crate) fn home(&self) -> Vec<u8> {
        let home = self.env.iter().find(|(name, _)| name == "HOME");
        home.map_or_else(|| b"/".to_vec(), |(_, home)| home.as_bytes().to_vec())
    }

    /// Starts a command under a keeper of its own.
    pub(crate) fn start(
        &self,
        command: &StartRequest<'_>,
    ) -> Result<Rc<ProcessTree>, WardenFailure> {
        let slot = self.next_slot.get();
        self.next_slot.set(slot + 1);
        let env = self.environment(command.env)?;
        let cwd = match command.cwd {
            Some(cwd) => c_string(&cwd.0)?,
            None => c_string(self.cwd.as_os_str().as_bytes())?,
        };
        let plan = StartPlan {
            slot,
            report: self.report.as_fd(),
            programs: programs(command.argv, &env)?,
            argv: all_c_strings(command.argv.iter().map(|word| word.0.as_slice()))?,
            env,
            cwd,
            descriptors: command.descriptors.clone(),
            terminal: command.terminal,
            below_init: self.is_init,
        };
        let keeper = start(&plan).map_err(|error| system("start a process", &error))?;
        let processes = Rc::new(ProcessTree::new(keeper.unsigned_abs()));
        self.process_trees
            .borrow_mut()
            .insert(slot, Rc::clone(&processes));
        Ok(processes)
    }

    pub(crate) async fn read_reports(self: Rc<Self>, reports: OwnedFd) {
        let Ok(reports) = watch(reports) else {
            return self.stop();
        };
        let reports = Rc::new(reports);
        self.reports.replace(Some(Rc::clone(&reports)));
        loop {
            let Ok(mut ready) = reports.readable().await else {
                return self.stop();
            };
            self.hear_reports();
            ready.clear_ready();
        }
    }

    /// Waits for every child that ended, and for those nobody here knows.
    pub(crate) fn reap(&self) {
        let mut orphaned = false;
        // Until there is none: signals of one kind that wait are one signal, however many children
        // ended.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            // What a keeper had to say is in the pipe before it ends.
            self.hear_reports();
            let pid = pid.as_raw_pid().unsigned_abs();
            let slot = self
                .process_trees
                .borrow()
                .iter()
                .find_map(|(slot, processes)| (processes.keeper == pid).then_some(*slot));
            if let Some(processes) =
                slot.and_then(|slot| self.process_trees.borrow_mut().remove(&slot))
            {
                // A keeper ends by itself only when nothing is left below it. One that was killed,
                // before or after its command ended, left whatever there was to us.
                orphaned |= status.exit_status() != Some(0);
                processes.lose();
            }
        }
        if orphaned {
            self.end_orphans();
        }
    }

    pub(crate) fn keepers(&self) -> Vec<u32> {
        let process_trees = self.process_trees.borrow();
        process_trees
            .values()
            .map(|processes| processes.keeper)
            .collect()
    }

    /// A command that kills its keeper gets nothing away: whatever then becomes our own child and
    /// is no keeper is ended.
    fn end_orphans(&self) {
        let keepers = self.keepers().into_iter().collect();
        let deadline = Instant::now() + std::time::Duration::from_secs(1);
        let mut pause = std::time::Duration::from_micros(50);
        while tree::sweep(std::process::id(), &keepers) && Instant::now() < deadline {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            // What was killed needs a processor to end on, which without this would be ours.
            std::thread::sleep(pause);
            pause = (pause * 2).min(std::time::Duration::from_millis(10));
        }
    }

    fn hear_reports(&self) {
        let Some(reports) = self.reports.borrow().clone() else {
            return;
        };
        let mut record = [0; KeeperReport::SIZE];
        // Records are shorter than what a pipe takes at once, so that a read brings a whole one or
        // none.
        while let Ok(KeeperReport::SIZE) = rustix::io::read(reports.get_ref(), &mut record) {
            let record = KeeperReport::from_bytes(&record);
            let processes = self.process_trees.borrow().get(&record.slot).cloned();
            if let Some(processes) = processes {
                processes.hear(&record);
            }
        }
    }

    fn environment(
        &self,
        added: &[(ByteString, ByteString)],
    ) -> Result<Vec<CString>, WardenFailure> {
        let mut env: Vec<(&[u8], &[u8])> = self
            .env
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        for (name, value) in added {
            if name.0.is_empty() || name.0.contains(&b'=') {
                return Err(bad_request("a variable needs a name without '='"));
            }
            // One value for each name: of two, programs differ in which they take.
            env.retain(|(other, _)| *other != name.0);
            env.push((&name.0, &value.0));
        }
        all_c_strings(env.iter().map(|(name, value)| [*name, *value].join(&b'=')))
    }
}

/// Clients, idleness and the end.
impl WardenState {
    pub(crate) fn client_came(&self) {
        self.clients.set(self.clients.get() + 1);
    }

    pub(crate) fn client_left(&self) {
        self.clients.set(self.clients.get().saturating_sub(1));
        self.last_use.set(Instant::now());
    }

    pub(crate) fn clients(&self) -> u32 {
        self.clients.get()
    }

    /// Since when nobody has been here; `None` while somebody is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.clients.get() == 0).then(|| self.last_use.get())
    }

    pub(crate) fn stop(&self) {
        // Kept besides the notice, which may come before anybody waits for it.
        self.stopping.set(true);
        self.stop.notify_waiters();
    }

    pub(crate) async fn stopped(&self) {
        loop {
            // Asked for before the look: whoever waits hears of what happens from here on.
            let notice = self.stop.notified();
            if self.stopping.get() {
                return;
            }
            notice.await;
        }
    }
}

/// Where the program may be: the word itself if it has a slash, else the folders of `PATH`.
fn programs(argv: &[ByteString], env: &[CString]) -> Result<Vec<CString>, WardenFailure> {
    let word = &argv.first().ok_or_else(|| bad_request("no program"))?.0;
    if word.is_empty() {
        return Err(bad_request("no program"));
    }
    if word.contains(&b'/') {
        return Ok(vec![c_string(word)?]);
    }
    let path = env
        .iter()
        .find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    path.split(|byte| *byte == b':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| c_string(&[folder, word].join(&b'/')))
        .collect()
}

fn all_c_strings<B: AsRef<[u8]>>(
    words: impl Iterator<Item = B>,
) -> Result<Vec<CString>, WardenFailure> {
    words.map(|word| c_string(word.as_ref())).collect()
}

fn c_string(bytes: &[u8]) -> Result<CString, WardenFailure> {
    CString::new(bytes).map_err(|_| bad_request("a NUL byte"))
}

pub(crate) fn bad_request(why: &str) -> WardenFailure {
    WardenFailure {
        kind: FailureKind::BadRequest,
        errno: None,
        text: why.to_owned(),
    }
}

pub(crate) fn system(step: &str, error: &io::Error) -> WardenFailure {
    WardenFailure {
        kind: FailureKind::System,
        errno: error.raw_os_error(),
        text: format!("cannot {step}: {error}"),
    }
}
