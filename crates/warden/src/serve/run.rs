//! One-shot commands: started, watched, picked up again, ended.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use hermetic_types::RunId;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

use super::client::Call;
use super::family::Family;
use super::kept::Kept;
use super::lead::Lead;
use super::output::Source;
use super::pump::{self, Buffer};
use super::stdin::StdinQueue;
use super::tree;
use super::world::{Command, World, system};
use crate::mux::MuxStream;
use crate::protocol::frame::{Kind, header};
use crate::protocol::{
    Attach, ByteString, Cut, Ended, Failure, FailureKind, Leftovers, Output, Reply, Run,
    RunSummary, Status, StdinMode, WindowSize, decode, encode,
};

/// A run that is known, going on or over.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: RunId,
    /// Shortened, for listings.
    pub(crate) argv: Vec<ByteString>,
    pub(crate) detach: bool,
    /// Whose processes these are. A command in a shell gets it when the shell is there.
    pub(crate) family: OnceCell<Rc<Family>>,
    pub(crate) stdin: StdinQueue,
    pub(crate) setting: Setting,
    terminal: Option<OwnedFd>,
    begun: Instant,
    /// What a later caller gets; only for runs that outlive theirs.
    kept: RefCell<Option<Kept>>,
    output: Cell<u64>,
    viewer: RefCell<Option<MuxStream>>,
    viewer_changed: Notify,
    pub(crate) end_asked: Notify,
    pub(crate) interrupted: Notify,
    over: RefCell<Option<Result<Ended, Failure>>>,
    over_changed: Notify,
}

/// Where a command runs, which decides what a signal to it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// In processes of its own.
    Alone,
    /// In a shell that others will use after it.
    Shell,
}

/// Starts a command and stays with its caller until either is gone.
pub(crate) async fn run(world: &Rc<World>, mut call: Call, request: Run) {
    match begin(world, &request, call.stream.clone()) {
        Ok(run) => obey(&run, &mut call).await,
        Err(failure) => call.fail(&failure).await,
    }
}

/// Gives a run's output to a new caller: what was kept, then what comes.
pub(crate) async fn attach(world: &Rc<World>, mut call: Call, request: &Attach) {
    let Some(run) = world.runs.find(&request.id) else {
        return call.fail(&no_such_run(&request.id)).await;
    };
    if let Some(earlier) = run.viewer.replace(None) {
        run.viewer_changed.notify_waiters();
        spawn_local(async move {
            let superseded = Failure {
                kind: FailureKind::Superseded,
                errno: None,
                text: "another caller attached to this run".into(),
            };
            let _ = earlier.send(Kind::Failed, &encode(&superseded)).await;
            let _ = earlier.close().await;
        });
    }
    if let Some(pid) = run.pid() {
        let _ = call.stream.send(Kind::Started, &encode(&pid)).await;
    }
    let mut from = request.from;
    loop {
        // More may arrive while this is being sent; then there is another round.
        let (replay, total) = match &*run.kept.borrow() {
            Some(kept) => (kept.replay(from), kept.total()),
            None => (Vec::new(), from),
        };
        if replay.is_empty() {
            break;
        }
        if !pump::replay(&call.stream, replay).await {
            return;
        }
        from = total;
    }
    let over = run.over.borrow().clone();
    if let Some(end) = over {
        pump::tell_end(&call.stream, &end).await;
        return;
    }
    run.viewer.replace(Some(call.stream.clone()));
    obey(&run, &mut call).await;
}

/// Ends a run and everything below it; in a shell, the command and what it started.
pub(crate) async fn kill(world: &Rc<World>, id: &RunId) -> Result<Reply, Failure> {
    let run = world.runs.find(id).ok_or_else(|| no_such_run(id))?;
    run.end_asked.notify_one();
    let ended = async {
        run.until_over().await;
        if let (Setting::Alone, Some(family)) = (run.setting, run.family.get()) {
            // What it left in the background is meant too.
            family.end(Duration::from_secs(1)).await;
            family.gone().await;
        }
    };
    match timeout(Duration::from_secs(20), ended).await {
        Ok(()) => Ok(Reply::Done),
        Err(_) => Err(Failure {
            kind: FailureKind::System,
            errno: None,
            text: "some of its processes cannot be killed".into(),
        }),
    }
}

fn begin(world: &Rc<World>, request: &Run, viewer: MuxStream) -> Result<Rc<Active>, Failure> {
    world.runs.refuse_known(&request.id)?;
    let ends = Ends::open(request).map_err(|error| system("make pipes", &error))?;
    let lead = match &request.leads {
        Some(shell) => Some(Lead::open(shell).map_err(|error| system("make pipes", &error))?),
        None => None,
    };
    let mut descriptors: Vec<_> = (0..)
        .zip(&ends.theirs)
        .map(|(n, fd)| (fd.as_fd(), n))
        .collect();
    descriptors.extend(lead.as_ref().map(Lead::theirs));
    let family = world.start(&Command {
        argv: &request.argv,
        env: &request.env,
        cwd: request.cwd.as_ref(),
        descriptors,
        terminal: ends.terminal.is_some(),
    })?;
    drop(ends.theirs);
    let run = Active {
        family: OnceCell::from(Rc::clone(&family)),
        terminal: ends.terminal,
        ..Active::new(
            request.id.clone(),
            request.argv.clone(),
            request.detach,
            Setting::Alone,
            viewer,
        )
    };
    let run = Rc::new(run);
    world.runs.add(Rc::clone(&run));
    let terms = Terms {
        timeout: request.timeout,
        leftovers: request.leftovers,
        grace: request.grace,
        lead,
    };
    spawn_local(live(
        Rc::clone(world),
        Rc::clone(&run),
        family,
        terms,
        ends.sources,
        ends.stdin,
    ));
    Ok(run)
}

struct Terms {
    timeout: Option<Duration>,
    leftovers: Leftovers,
    grace: Duration,
    lead: Option<Lead>,
}

/// Both ends of everything the command is connected to.
struct Ends {
    /// The command's 0, 1 and 2.
    theirs: Vec<OwnedFd>,
    sources: Vec<Source>,
    stdin: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
}

impl Ends {
    fn open(request: &Run) -> std::io::Result<Self> {
        if let Output::Pty(size) = request.output {
            return Self::terminal(size, &request.stdin);
        }
        let (stdin_theirs, stdin) = match request.stdin {
            StdinMode::Empty => (dev_null()?, None),
            StdinMode::Open => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                (read, Some(write))
            }
        };
        let (out, out_theirs) = Source::pipe(Kind::Out)?;
        let (sources, err_theirs) = if request.output == Output::Merged {
            (vec![out], out_theirs.try_clone()?)
        } else {
            let (err, err_theirs) = Source::pipe(Kind::Err)?;
            (vec![out, err], err_theirs)
        };
        Ok(Self {
            theirs: vec![stdin_theirs, out_theirs, err_theirs],
            sources,
            stdin,
            terminal: None,
        })
    }

    fn terminal(size: WindowSize, stdin: &StdinMode) -> std::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, winsize(size))?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        Ok(Self {
            theirs: vec![slave.try_clone()?, slave.try_clone()?, slave],
            stdin: (*stdin == StdinMode::Open)
                .then(|| master.try_clone())
                .transpose()?,
            terminal: Some(master.try_clone()?),
            sources: vec![Source::terminal(master)?],
        })
    }
}

/// The run's own task.
async fn live(
    world: Rc<World>,
    run: Rc<Active>,
    family: Rc<Family>,
    terms: Terms,
    mut sources: Vec<Source>,
    stdin: Option<OwnedFd>,
) {
    let oom_before = world.oom.read();
    match family.started().await {
        Ok(pid) => run.send_started(pid).await,
        Err(failure) => return run.finish(Err(failure)).await,
    }
    let mut buffer = Buffer::new();
    let feed = async {
        match stdin {
            Some(fd) => run.stdin.feed(fd, run.terminal.is_some()).await,
            None => run.stdin.swallow().await,
        }
    };
    let work = async {
        let pumped = pump::until_over(&run, &family, &mut sources, &mut buffer);
        futures::future::join(supervise(&run, &family, &terms), pumped)
            .await
            .0
    };
    let cut = match futures::future::select(std::pin::pin!(work), std::pin::pin!(feed)).await {
        futures::future::Either::Left((cut, _)) => cut,
        futures::future::Either::Right(((), work)) => work.await,
    };

    let Some(exit) = family.exit() else {
        return;
    };
    let cwd = terms.lead.and_then(|lead| lead.follow(&world));
    let killed = matches!(exit.status, Status::Signalled(9) | Status::Unknown);
    let leftovers = if exit.others && !family.is_gone() {
        tree::count_below(family.keeper)
    } else {
        0
    };
    let ended = Ended {
        status: exit.status,
        cut,
        usage: exit.usage,
        killed_for_memory: (killed || exit.others || exit.status != Status::Exited(0))
            && world.oom.read() > oom_before,
        leftovers,
        cwd,
        shell_fresh: false,
        shell_lost: None,
    };
    run.finish(Ok(ended)).await;
    if leftovers > 0 {
        pump::for_leftovers(&run, sources, buffer).await;
    }
}

/// Waits for the end, or brings it about.
async fn supervise(run: &Rc<Active>, family: &Family, terms: &Terms) -> Option<Cut> {
    let limit = terms.timeout.unwrap_or(Duration::MAX);
    let ended = async {
        let ended = std::pin::pin!(family.ended());
        let asked = std::pin::pin!(run.end_asked.notified());
        match futures::future::select(ended, asked).await {
            futures::future::Either::Left(_) => None,
            futures::future::Either::Right(_) => Some(Cut::Killed),
        }
    };
    let cut = timeout(limit, ended).await.unwrap_or(Some(Cut::TimedOut));
    if cut.is_some() {
        family.end(terms.grace).await;
    } else if terms.leftovers == Leftovers::End {
        family.end(Duration::ZERO).await;
    }
    if family.exit().is_none() {
        // It cannot be killed; its end is told as unknown rather than never.
        family.lose();
    }
    cut
}

/// Does what the caller says until he is gone.
pub(crate) async fn obey(run: &Rc<Active>, call: &mut Call) {
    while let Ok(Some(frame)) = call.stream.receive(&mut call.frames).await {
        let understood = match frame.kind {
            Kind::Stdin => run.stdin.push(frame.payload, call.stream.clone()),
            Kind::StdinEnd => {
                run.stdin.end();
                true
            }
            Kind::Signal => decode(&frame.payload, "signal")
                .map(|n| run.signal(n))
                .is_ok(),
            Kind::Resize => decode(&frame.payload, "size")
                .map(|size| run.resize(size))
                .is_ok(),
            _ => false,
        };
        if !understood {
            call.stream.reset();
            break;
        }
    }
    run.caller_left(&call.stream);
}

impl Active {
    pub(crate) fn new(
        id: RunId,
        argv: Vec<ByteString>,
        detach: bool,
        setting: Setting,
        viewer: MuxStream,
    ) -> Self {
        Self {
            id,
            argv: shortened(argv),
            detach,
            family: OnceCell::new(),
            stdin: StdinQueue::default(),
            setting,
            terminal: None,
            begun: Instant::now(),
            kept: RefCell::new(detach.then(Kept::default)),
            output: Cell::new(0),
            viewer: RefCell::new(Some(viewer)),
            viewer_changed: Notify::new(),
            end_asked: Notify::new(),
            interrupted: Notify::new(),
            over: RefCell::new(None),
            over_changed: Notify::new(),
        }
    }

    pub(crate) async fn until_over(&self) {
        loop {
            let mut changed = std::pin::pin!(self.over_changed.notified());
            changed.as_mut().enable();
            if self.is_over() {
                return;
            }
            changed.await;
        }
    }

    fn pid(&self) -> Option<u32> {
        self.family.get()?.pid()
    }

    fn signal(&self, number: i32) {
        match self.setting {
            Setting::Alone => {
                if let Some(family) = self.family.get() {
                    family.signal(number);
                }
            }
            Setting::Shell => self.interrupted.notify_one(),
        }
    }

    pub(crate) async fn send_started(&self, pid: u32) {
        let payload = encode(&pid);
        let mut frame = header(Kind::Started, payload.len()).to_vec();
        frame.extend_from_slice(&payload);
        self.send(&frame).await;
    }

    pub(crate) async fn send_skipped(&self, count: u64) {
        let payload = encode(&count);
        let mut frame = header(Kind::Skipped, payload.len()).to_vec();
        frame.extend_from_slice(&payload);
        self.send(&frame).await;
    }

    /// Output that comes from elsewhere than the run's own pipes.
    pub(crate) async fn pass_on(&self, kind: Kind, bytes: &[u8]) {
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

    pub(crate) fn keep(&self, kind: Kind, bytes: &[u8]) {
        self.output.set(self.output.get() + bytes.len() as u64);
        if let Some(kept) = &mut *self.kept.borrow_mut() {
            kept.push(kind, bytes);
        }
    }

    /// A frame to whoever listens, waiting until he takes it or is no longer the one.
    pub(crate) async fn send(&self, frame: &[u8]) {
        let Some(viewer) = self.viewer() else { return };
        let sent = std::pin::pin!(viewer.write_all(frame));
        let changed = std::pin::pin!(self.viewer_changed.notified());
        if let futures::future::Either::Left((Err(_), _)) =
            futures::future::select(sent, changed).await
        {
            self.caller_left(&viewer);
        }
    }

    pub(crate) async fn finish(&self, end: Result<Ended, Failure>) {
        self.over.replace(Some(end.clone()));
        self.over_changed.notify_waiters();
        if let Some(viewer) = self.viewer() {
            pump::tell_end(&viewer, &end).await;
        }
        self.viewer.replace(None);
    }

    fn caller_left(&self, stream: &MuxStream) {
        let was_listening = self.viewer().is_some_and(|viewer| viewer.is(stream));
        if was_listening {
            self.viewer.replace(None);
            self.viewer_changed.notify_waiters();
            if !self.detach && !self.is_over() {
                self.end_asked.notify_one();
            }
        }
    }

    fn resize(&self, size: WindowSize) {
        if let Some(terminal) = &self.terminal {
            // A terminal that is gone has no size.
            let _ = tcsetwinsize(terminal, winsize(size));
        }
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

fn winsize(size: WindowSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn dev_null() -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

fn no_such_run(id: &RunId) -> Failure {
    Failure {
        kind: FailureKind::NoSuchRun,
        errno: None,
        text: format!("no run {id}"),
    }
}
