//! The task that owns one shell.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use hermetic_types::HolderEpoch;
use rustix::process::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::bash::BashProcess;
use super::interrupt::{InterruptSequence, InterruptStep, sweep_newer};
use super::usage;
use crate::protocol::frame::FrameKind;
use crate::protocol::{
    ByteString, CommandEnd, CutReason, ExitState, ShellLost, ShellRequest, WardenFailure,
};
use crate::serve::backlog::{Backlog, ReplayChunk};
use crate::serve::holder::held_elsewhere;
use crate::serve::known_run::KnownRun;
use crate::serve::output::{OutputSource, ReadOutcome};
use crate::serve::process_tree::ProcessTree;
use crate::serve::pump::{FrameBuffer, deliver};
use crate::serve::state::{WardenState, system};

/// How long a shell that has read everything may take to tell the status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the task of a shell is asked to do.
#[derive(Debug)]
pub(super) enum ShellOrder {
    Run(ShellJob),
    End(oneshot::Sender<()>),
}

/// One command for a shell.
#[derive(Debug)]
pub(super) struct ShellJob {
    /// Of the gateway that asked for it.
    pub(super) holder: HolderEpoch,
    pub(super) run: Rc<KnownRun>,
    pub(super) request: ShellRequest,
}

/// The task of one persistent shell. A bash that ends is replaced at the next command.
#[derive(Debug)]
pub(super) struct ShellSession {
    warden: Rc<WardenState>,
    bash: Option<BashProcess>,
    /// Where the last shell was, for the next one.
    cwd: Option<ByteString>,
    /// The same, for others to see.
    place: Rc<RefCell<Option<ByteString>>>,
    /// What background jobs wrote since the last command.
    between: Backlog,
    /// Process trees of shells that are no more, as long as their jobs live.
    past: Vec<Rc<ProcessTree>>,
}

/// How the work on a command came to its end.
enum CommandOutcome {
    Told(i32),
    ShellEnded,
    Stuck,
}

/// What happened while a command runs.
enum SessionEvent {
    Output(usize),
    Told(i32),
    ShellEnded,
    Due,
    TimedOut,
    Asked(Option<CutReason>),
    Look,
}

impl ShellSession {
    pub(super) fn new(warden: Rc<WardenState>, place: Rc<RefCell<Option<ByteString>>>) -> Self {
        Self {
            warden,
            bash: None,
            cwd: None,
            place,
            between: Backlog::default(),
            past: Vec::new(),
        }
    }

    pub(super) async fn live(mut self, mut orders: mpsc::Receiver<ShellOrder>) {
        let mut buffer = FrameBuffer::new_small();
        loop {
            match self.next_order(&mut orders, &mut buffer).await {
                Some(ShellOrder::Run(job)) => {
                    let end = self.perform(&job).await;
                    job.run.finish(end).await;
                    if let Some(bash) = &mut self.bash {
                        // After the command's end was told: it walks over `/proc`, and nobody has
                        // to wait for that.
                        bash.settle();
                    }
                }
                Some(ShellOrder::End(done)) => {
                    self.end().await;
                    let _ = done.send(());
                    return;
                }
                None => return self.end().await,
            }
        }
    }

    /// Collects what background jobs write until there is something to do.
    async fn next_order(
        &mut self,
        orders: &mut mpsc::Receiver<ShellOrder>,
        buffer: &mut FrameBuffer,
    ) -> Option<ShellOrder> {
        poll_fn(|cx| {
            while let Some(bash) = &mut self.bash {
                match bash.output.poll_read(cx, buffer.body()) {
                    Poll::Ready(ReadOutcome::Bytes(length)) => {
                        self.between.push(FrameKind::Out, &buffer.body()[..length]);
                    }
                    Poll::Ready(ReadOutcome::Marked | ReadOutcome::Closed) | Poll::Pending => break,
                }
            }
            // After the output: what jobs wrote before this order belongs before it.
            orders.poll_recv(cx)
        })
        .await
    }

    async fn perform(&mut self, job: &ShellJob) -> Result<CommandEnd, WardenFailure> {
        refuse_past(&self.warden, job)?;
        let oom_before = self.warden.oom.read();
        let fresh = self.ensure(&job.request).await?;
        let Some(bash) = &mut self.bash else {
            return Err(system(
                "start a shell",
                &std::io::ErrorKind::NotFound.into(),
            ));
        };
        let _ = job.run.processes.set(Rc::clone(&bash.processes));
        if let Some(pid) = bash.processes.pid() {
            job.run.send_started(pid).await;
        }
        for item in std::mem::take(&mut self.between).replay(0) {
            match item {
                ReplayChunk::Piece(piece) => job.run.pass_on(piece.kind, &piece.bytes).await,
                ReplayChunk::Skipped(count) => job.run.send_skipped(count).await,
            }
        }
        let mut buffer = FrameBuffer::new();
        let before = usage::so_far(&bash.processes);
        // Again: starting the shell and telling of what came before takes its time.
        refuse_past(&self.warden, job)?;
        let submitted = bash.submit(&job.request.text.0);
        submitted.map_err(|error| system("reach the shell", &error.into()))?;
        let (outcome, cut) = work(bash, job, &mut buffer).await;
        if cut.is_some() {
            // A shell tells its status as soon as the one it waited for is gone; the children of
            // that one may be with a new parent by then.
            sweep_newer(bash).await;
        }

        let (status, lost) = match outcome {
            CommandOutcome::Told(status) => (ExitState::Exited(status), None),
            CommandOutcome::ShellEnded => {
                let status = bash.processes.ended().await.status;
                let lost = match status {
                    ExitState::Exited(_) => ShellLost::Exited,
                    ExitState::Signalled(_) | ExitState::Unknown => ShellLost::Killed,
                };
                (status, Some(lost))
            }
            CommandOutcome::Stuck => {
                // Asked while it lives: a process that was killed has no directory any more.
                self.cwd = bash.cwd().or(self.cwd.take());
                bash.signal(Signal::KILL);
                let _ = tokio::time::timeout(STATUS_TIMEOUT, bash.processes.ended()).await;
                sweep_newer(bash).await;
                (ExitState::Signalled(9), Some(ShellLost::Stuck))
            }
        };
        // The status may be told before all output was read: two pipes have no order between them.
        drain(bash, job, &mut buffer).await;
        let usage = usage::between(&before, &usage::so_far(&bash.processes));
        if let Some(cwd) = bash.cwd() {
            self.cwd = Some(cwd);
        }
        self.place.replace(self.cwd.clone());
        let leftovers = u32::try_from(bash.newer().len()).unwrap_or(u32::MAX);
        if lost.is_some() {
            self.retire();
        }
        Ok(CommandEnd {
            status,
            cut,
            usage,
            killed_for_memory: status != ExitState::Exited(0)
                && self.warden.oom.read() > oom_before,
            leftovers,
            cwd: self.cwd.clone(),
            shell_fresh: fresh,
            shell_lost: lost,
        })
    }

    /// Says whether the shell had to be started.
    async fn ensure(&mut self, request: &ShellRequest) -> Result<bool, WardenFailure> {
        if self.bash.as_ref().is_some_and(BashProcess::is_alive) {
            return Ok(false);
        }
        self.retire();
        let cwd = self.cwd.clone().or_else(|| request.cwd.clone());
        let bash = BashProcess::start(&self.warden, cwd.as_ref())?;
        match bash.started().await {
            Ok(_) => self.bash = Some(bash),
            // The directory it was in may be gone.
            Err(_) if self.cwd.take().is_some() => {
                let bash = BashProcess::start(&self.warden, request.cwd.as_ref())?;
                bash.started().await?;
                self.bash = Some(bash);
            }
            Err(failure) => return Err(failure),
        }
        Ok(true)
    }

    /// The shell is no more; its background jobs may be.
    fn retire(&mut self) {
        self.past.retain(|processes| !processes.is_gone());
        if let Some(bash) = self.bash.take() {
            let BashProcess {
                processes, output, ..
            } = bash;
            self.past.push(Rc::clone(&processes));
            tokio::task::spawn_local(swallow(output));
        }
    }

    async fn end(&mut self) {
        self.retire();
        for processes in &self.past {
            processes.end(Duration::from_millis(200)).await;
        }
    }
}

/// What waited while somebody else took over was not begun, and is not.
fn refuse_past(warden: &WardenState, job: &ShellJob) -> Result<(), WardenFailure> {
    match warden.holders.is_past(job.holder) {
        true => Err(held_elsewhere()),
        false => Ok(()),
    }
}

/// Sees a command through: its output, its end, and whatever is asked meanwhile.
async fn work(
    bash: &mut BashProcess,
    job: &ShellJob,
    buffer: &mut FrameBuffer,
) -> (CommandOutcome, Option<CutReason>) {
    let begun = Instant::now();
    let deadline = job
        .request
        .timeout
        .and_then(|limit| begun.checked_add(limit));
    let mut ending: Option<InterruptSequence> = None;
    let mut cut = None;
    let mut silent_since: Option<Instant> = None;
    let mut asked_again = false;
    loop {
        match happened(bash, job, buffer, deadline, ending.as_ref()).await {
            SessionEvent::Output(length) => deliver(&job.run, FrameKind::Out, buffer, length).await,
            SessionEvent::Told(status) => return (CommandOutcome::Told(status), cut),
            SessionEvent::ShellEnded => return (CommandOutcome::ShellEnded, cut),
            SessionEvent::TimedOut => {
                cut = Some(CutReason::TimedOut);
                ending = Some(InterruptSequence::of_command_begun(begun));
            }
            SessionEvent::Asked(why) => {
                cut = cut.or(why);
                // A second interrupt does not begin anew: the steps that were taken count.
                ending = ending.or_else(|| Some(InterruptSequence::of_command_begun(begun)));
            }
            SessionEvent::Due => {
                let step = ending.as_mut().map(|ending| ending.take(bash));
                if step == Some(InterruptStep::Hopeless) {
                    return (CommandOutcome::Stuck, cut);
                }
            }
            // bash reads ahead, so it may be busy all the same: one that leaves a second question
            // unread is.
            SessionEvent::Look if bash.has_read_all() && !asked_again => {
                bash.ask_again();
                asked_again = true;
            }
            SessionEvent::Look if bash.has_read_all() => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= STATUS_TIMEOUT {
                    return (CommandOutcome::Stuck, cut);
                }
            }
            SessionEvent::Look => silent_since = None,
        }
    }
}

async fn happened(
    bash: &mut BashProcess,
    job: &ShellJob,
    buffer: &mut FrameBuffer,
    deadline: Option<Instant>,
    ending: Option<&InterruptSequence>,
) -> SessionEvent {
    let processes = Rc::clone(&bash.processes);
    let ended = pin!(processes.ended());
    let asked = pin!(asked(job));
    let timed_out = pin!(async {
        match (deadline, ending) {
            (Some(deadline), None) => sleep_until(deadline).await,
            _ => std::future::pending().await,
        }
    });
    let due = pin!(async {
        match ending {
            Some(ending) => ending.due().await,
            None => std::future::pending().await,
        }
    });
    let look = pin!(sleep(LOOK_EVERY));
    let swallowed = pin!(job.run.stdin.swallow());
    let (mut ended, mut asked, mut timed_out) = (ended, asked, timed_out);
    let (mut due, mut look, mut swallowed) = (due, look, swallowed);
    poll_fn(|cx| {
        // Output first, or a command that writes much could be told as over with half of it unread.
        if let Poll::Ready(ReadOutcome::Bytes(length)) = bash.output.poll_read(cx, buffer.body()) {
            return Poll::Ready(SessionEvent::Output(length));
        }
        if let Poll::Ready(status) = bash.poll_status(cx) {
            return Poll::Ready(SessionEvent::Told(status));
        }
        // After the status: a command that exits the shell may have told one.
        if ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(SessionEvent::ShellEnded);
        }
        if let Poll::Ready(why) = asked.as_mut().poll(cx) {
            return Poll::Ready(SessionEvent::Asked(why));
        }
        if timed_out.as_mut().poll(cx).is_ready() {
            return Poll::Ready(SessionEvent::TimedOut);
        }
        if due.as_mut().poll(cx).is_ready() {
            return Poll::Ready(SessionEvent::Due);
        }
        if look.as_mut().poll(cx).is_ready() {
            return Poll::Ready(SessionEvent::Look);
        }
        // Never ready: what is sent as stdin is taken and forgotten.
        let _: Poll<()> = swallowed.as_mut().poll(cx);
        Poll::Pending
    })
    .await
}

/// `None` for an interrupt, which is no cut: the command may even survive it.
async fn asked(job: &ShellJob) -> Option<CutReason> {
    let killed = pin!(job.run.end_asked.notified());
    let interrupted = pin!(job.run.interrupted.notified());
    match futures::future::select(killed, interrupted).await {
        futures::future::Either::Left(_) => Some(CutReason::Killed),
        futures::future::Either::Right(_) => None,
    }
}

/// What was written by now, and no more: background jobs may hold the pipe for ever.
async fn drain(bash: &mut BashProcess, job: &ShellJob, buffer: &mut FrameBuffer) {
    bash.output.set_mark(true);
    while let ReadOutcome::Bytes(length) =
        poll_fn(|cx| bash.output.poll_read(cx, buffer.body())).await
    {
        deliver(&job.run, FrameKind::Out, buffer, length).await;
    }
    bash.output.clear_mark();
}

/// Reads on for the jobs of a shell that is no more, so that they do not choke.
async fn swallow(mut output: OutputSource) {
    let mut buffer = vec![0; 4096];
    while let ReadOutcome::Bytes(_) = poll_fn(|cx| output.poll_read(cx, &mut buffer)).await {}
}
