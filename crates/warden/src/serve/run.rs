//! One-shot commands: started, watched, picked up again, ended.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use hermetic_types::RunId;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::client::OpenCall;
use super::command_streams::CommandStreams;
use super::cwd_report::CwdReport;
use super::known_run::{KnownRun, RunPlace, superseded};
use super::output::OutputSource;
use super::process_tree::ProcessTree;
use super::pump::{self, FrameBuffer};
use super::state::{StartRequest, WardenState, system};
use super::tree;
use crate::mux::MuxStream;
use crate::protocol::frame::FrameKind;
use crate::protocol::{
    AttachRequest, CommandEnd, CutReason, ExitState, FailureKind, LeftoverPolicy, RunRequest,
    WardenFailure, WardenReply, decode, encode,
};

/// Starts a command and stays with its caller until either is gone.
pub(crate) async fn run(warden: &Rc<WardenState>, mut call: OpenCall, request: RunRequest) {
    match begin(warden, &request, call.stream.clone()) {
        Ok(run) => obey(&run, &mut call).await,
        Err(failure) => call.fail(&failure).await,
    }
}

/// Gives a run's output to a new caller: what was kept, then what comes.
pub(crate) async fn attach(warden: &Rc<WardenState>, mut call: OpenCall, request: &AttachRequest) {
    let Some(run) = warden.runs.find(&request.id) else {
        return call.fail(&no_such_run(&request.id)).await;
    };
    // First, so that what comes while the replay is sent is kept, and goes to nobody in the middle
    // of it.
    let turn = run.dismiss_viewer();
    if let Some(pid) = run.pid() {
        let _ = call.stream.send(FrameKind::Started, &encode(&pid)).await;
    }
    let mut from = request.from;
    loop {
        // More may arrive while this is being sent; then there is another round.
        let (replay, total) = run.kept_from(from);
        if replay.is_empty() {
            break;
        }
        if !pump::replay(&call.stream, replay).await {
            return;
        }
        from = total;
    }
    if let Some(end) = run.end() {
        pump::tell_end(&call.stream, &end).await;
        return;
    }
    if !run.is_latest(turn) {
        // Another one came while this one was given what was kept, and may listen already.
        return call.fail(&superseded()).await;
    }
    // No wait since the last look at what was kept, so that not a byte can have come in between.
    run.set_viewer(call.stream.clone());
    obey(&run, &mut call).await;
}

/// What is kept of a run's output by now. Whoever has the run keeps it.
pub(crate) async fn look(warden: &Rc<WardenState>, call: OpenCall, request: &AttachRequest) {
    let Some(run) = warden.runs.find(&request.id) else {
        return call.fail(&no_such_run(&request.id)).await;
    };
    if !run.detach {
        return call
            .fail(&WardenFailure {
                kind: FailureKind::Refused,
                errno: None,
                text: "its output goes to whoever started it and is not kept".into(),
            })
            .await;
    }
    let (replay, _) = run.kept_from(request.from);
    if pump::replay(&call.stream, replay).await {
        call.reply(&WardenReply::Done).await;
    }
}

/// Ends a run and everything below it; in a shell, the command and what it started.
pub(crate) async fn kill(
    warden: &Rc<WardenState>,
    id: &RunId,
) -> Result<WardenReply, WardenFailure> {
    let run = warden.runs.find(id).ok_or_else(|| no_such_run(id))?;
    run.end_asked.notify_one();
    let ended = async {
        run.until_over().await;
        if let (RunPlace::Alone, Some(processes)) = (run.setting, run.processes.get()) {
            // What it left in the background is meant too.
            processes.end(Duration::from_secs(1)).await;
            processes.gone().await;
        }
    };
    match timeout(Duration::from_secs(20), ended).await {
        Ok(()) => Ok(WardenReply::Done),
        Err(_) => Err(WardenFailure {
            kind: FailureKind::System,
            errno: None,
            text: "some of its processes cannot be killed".into(),
        }),
    }
}

fn begin(
    warden: &Rc<WardenState>,
    request: &RunRequest,
    viewer: MuxStream,
) -> Result<Rc<KnownRun>, WardenFailure> {
    // The name is the caller's, who repeats himself when an answer was lost: a second start under
    // it would run the command twice.
    warden.runs.refuse_known(&request.id)?;
    let streams = CommandStreams::open(request).map_err(|error| system("make pipes", &error))?;
    let cwd_report = match &request.leads {
        Some(shell) => Some(CwdReport::open(shell).map_err(|error| system("make pipes", &error))?),
        None => None,
    };
    let mut descriptors: Vec<_> = (0..)
        .zip(&streams.theirs)
        .map(|(n, fd)| (fd.as_fd(), n))
        .collect();
    descriptors.extend(cwd_report.as_ref().map(CwdReport::theirs));
    let processes = warden.start(&StartRequest {
        argv: &request.argv,
        env: &request.env,
        cwd: request.cwd.as_ref(),
        descriptors,
        terminal: streams.terminal.is_some(),
    })?;
    // Ours go: a pipe whose writing end we hold never comes to its end.
    drop(streams.theirs);
    let run = KnownRun::new(
        request.id.clone(),
        request.argv.clone(),
        request.detach,
        RunPlace::Alone,
        viewer,
    );
    let run = Rc::new(run.in_processes_of(&processes, streams.terminal));
    warden.runs.add(Rc::clone(&run));
    let terms = RunTerms {
        timeout: request.timeout,
        leftovers: request.leftovers,
        grace: request.grace,
        cwd_report,
    };
    spawn_local(live(
        Rc::clone(warden),
        Rc::clone(&run),
        processes,
        terms,
        streams.sources,
        streams.stdin,
    ));
    Ok(run)
}

/// The terms on which a run ends.
struct RunTerms {
    timeout: Option<Duration>,
    leftovers: LeftoverPolicy,
    grace: Duration,
    cwd_report: Option<CwdReport>,
}

/// The run's own task.
async fn live(
    warden: Rc<WardenState>,
    run: Rc<KnownRun>,
    processes: Rc<ProcessTree>,
    terms: RunTerms,
    mut sources: Vec<OutputSource>,
    stdin: Option<OwnedFd>,
) {
    // Before anything of it runs: the counter is the whole sandbox's, and only the difference
    // tells.
    let oom_before = warden.oom.read();
    match processes.started().await {
        Ok(pid) => run.send_started(pid).await,
        Err(failure) => return run.finish(Err(failure)).await,
    }
    let mut buffer = FrameBuffer::new();
    let feed = async {
        match stdin {
            Some(fd) => run.stdin.feed(fd, run.terminal.is_some()).await,
            None => run.stdin.swallow().await,
        }
    };
    let work = async {
        // Together: a command that is being ended may write its last words into a full pipe, and
        // would never end unread.
        let pumped = pump::until_over(&run, &processes, &mut sources, &mut buffer);
        futures::future::join(supervise(&run, &processes, &terms), pumped)
            .await
            .0
    };
    // Stdin is fed only as long as the command lives; who still sends is answered by the end.
    let cut = match futures::future::select(std::pin::pin!(work), std::pin::pin!(feed)).await {
        futures::future::Either::Left((cut, _)) => cut,
        futures::future::Either::Right(((), work)) => work.await,
    };

    let Some(exit) = processes.exit() else {
        return;
    };
    let cwd = terms
        .cwd_report
        .and_then(|cwd_report| cwd_report.follow(&warden));
    let killed = matches!(exit.status, ExitState::Signalled(9) | ExitState::Unknown);
    let leftovers = if exit.others && !processes.is_gone() {
        tree::count_below(processes.keeper)
    } else {
        0
    };
    let ended = CommandEnd {
        status: exit.status,
        cut,
        usage: exit.usage,
        killed_for_memory: (killed || exit.others || exit.status != ExitState::Exited(0))
            && warden.oom.read() > oom_before,
        leftovers,
        cwd,
        shell_fresh: false,
        shell_lost: None,
    };
    // The caller is told now; what is left in the background may write for hours.
    run.finish(Ok(ended)).await;
    if leftovers > 0 {
        pump::for_leftovers(&run, sources, buffer).await;
    }
}

/// Waits for the end, or brings it about.
async fn supervise(
    run: &Rc<KnownRun>,
    processes: &ProcessTree,
    terms: &RunTerms,
) -> Option<CutReason> {
    let limit = terms.timeout.unwrap_or(Duration::MAX);
    let ended = async {
        let ended = std::pin::pin!(processes.ended());
        let asked = std::pin::pin!(run.end_asked.notified());
        match futures::future::select(ended, asked).await {
            futures::future::Either::Left(_) => None,
            futures::future::Either::Right(_) => Some(CutReason::Killed),
        }
    };
    let cut = timeout(limit, ended)
        .await
        .unwrap_or(Some(CutReason::TimedOut));
    if cut.is_some() {
        processes.end(terms.grace).await;
    } else if terms.leftovers == LeftoverPolicy::End {
        processes.end(Duration::ZERO).await;
    }
    if processes.exit().is_none() {
        // It cannot be killed; its end is told as unknown rather than never.
        processes.lose();
    }
    cut
}

/// Does what the caller says until he is gone.
pub(crate) async fn obey(run: &Rc<KnownRun>, call: &mut OpenCall) {
    // Also where the link is cut while this waits: a command that is not detached ends with its caller.
    let _caller = CallerPresence {
        run,
        stream: call.stream.clone(),
    };
    while let Ok(Some(frame)) = call.stream.receive(&mut call.frames).await {
        let understood = match frame.kind {
            FrameKind::Stdin => run.stdin.push(frame.payload, call.stream.clone()),
            FrameKind::StdinEnd => {
                run.stdin.end();
                true
            }
            FrameKind::Signal => decode(&frame.payload, "signal")
                .map(|n| run.signal(n))
                .is_ok(),
            FrameKind::Resize => decode(&frame.payload, "size")
                .map(|size| run.resize(size))
                .is_ok(),
            _ => false,
        };
        if !understood {
            call.stream.reset();
            break;
        }
    }
}

/// A caller who has the run; dropped, he has left it.
struct CallerPresence<'a> {
    run: &'a KnownRun,
    stream: MuxStream,
}

impl Drop for CallerPresence<'_> {
    fn drop(&mut self) {
        self.run.caller_left(&self.stream);
    }
}

fn no_such_run(id: &RunId) -> WardenFailure {
    WardenFailure {
        kind: FailureKind::NoSuchRun,
        errno: None,
        text: format!("no run {id}"),
    }
}
