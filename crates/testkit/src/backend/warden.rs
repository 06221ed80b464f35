//! The far end of a link, played by this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use hermetic_types::{HolderEpoch, RunId, SandboxId};
use hermetic_warden::protocol::frame::FrameKind;
use hermetic_warden::protocol::hello::VERSION;
use hermetic_warden::protocol::{
    CommandEnd, CommandUsage, CutReason, ExitState, FailureKind, HoldRequest, KillRequest,
    ListenEndpoint, ListenReply, RunRequest, StdinMode, WardenFailure, WardenInfo, WardenReply,
    WardenRequest, encode, hello,
};
use hermetic_warden::stand_in::{self, StandInCaller};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Commands, lock, piped};

/// What one frame carries at most, with room to spare.
const CHUNK: usize = 16 << 10;

/// Serves one link until it closes.
pub(super) async fn play(
    commands: Commands,
    sandbox: SandboxId,
    highest: watch::Sender<HolderEpoch>,
    link: DuplexStream,
) {
    if matches!(commands, Commands::Silent) {
        return keep_silent(link).await;
    }
    let said = watch::Sender::new(None);
    let cut = until_past(highest.subscribe(), said.subscribe());
    let warden = Arc::new(PlayedWarden {
        commands,
        sandbox,
        running: Mutex::default(),
        highest,
        said,
    });
    let answer = move |request, caller| {
        let warden = Arc::clone(&warden);
        async move { warden.answer(request, caller).await }.boxed()
    };
    tokio::select! {
        () = stand_in::play(link, Arc::new(answer)) => {}
        () = cut => {}
    }
}

/// Returns when a higher epoch was said than this link's, which has to have said one.
async fn until_past(
    mut highest: watch::Receiver<HolderEpoch>,
    mut said: watch::Receiver<Option<HolderEpoch>>,
) {
    loop {
        let now = *highest.borrow_and_update();
        if said.borrow_and_update().is_some_and(|said| said < now) {
            return;
        }
        tokio::select! {
            Ok(()) = highest.changed() => {}
            Ok(()) = said.changed() => {}
            else => return,
        }
    }
}

/// Says hello and then nothing.
async fn keep_silent(mut link: DuplexStream) {
    if link.write_all(&hello::hello()).await.is_ok() {
        let mut ignored = tokio::io::sink();
        let _ = tokio::io::copy(&mut link.take(u64::MAX), &mut ignored).await;
    }
}

struct PlayedWarden {
    commands: Commands,
    sandbox: SandboxId,
    running: Mutex<HashMap<RunId, CancellationToken>>,
    highest: watch::Sender<HolderEpoch>,
    said: watch::Sender<Option<HolderEpoch>>,
}

impl PlayedWarden {
    async fn answer(&self, request: WardenRequest, caller: StandInCaller) {
        let voice = caller.voice();
        if let WardenRequest::Hold(hold) = request {
            return voice.reply(&self.hold(hold)).await;
        }
        let said = self.said.borrow().unwrap_or_default();
        self.said.send_replace(Some(said));
        match request {
            _ if said < *self.highest.borrow() => {
                voice
                    .fail(&refused("another gateway has this sandbox"))
                    .await;
            }
            WardenRequest::Shell(shell) => {
                let text = String::from_utf8_lossy(&shell.text.0).into_owned();
                self.run(shell.id, &text, shell.timeout, caller).await;
            }
            WardenRequest::Run(run) if run.stdin == StdinMode::Open => {
                self.speak_with(run, caller).await;
            }
            WardenRequest::Run(run) => {
                let text = text_of(&run);
                self.run(run.id, &text, run.timeout, caller).await;
            }
            WardenRequest::Kill(KillRequest::Run(id)) => match self.end(&id) {
                true => voice.reply(&WardenReply::Done).await,
                false => voice.fail(&refused("no such run")).await,
            },
            WardenRequest::Runs => voice.reply(&WardenReply::Runs(Vec::new())).await,
            WardenRequest::Info => voice.reply(&WardenReply::Info(info())).await,
            // Nobody ever connects.
            WardenRequest::Listen(listen) => {
                let port = match listen.endpoint {
                    ListenEndpoint::Tcp(port) => port,
                    ListenEndpoint::Unix(_) => 0,
                };
                voice
                    .reply(&WardenReply::Listening(ListenReply { port }))
                    .await;
            }
            _ => voice.fail(&refused("a stand-in has no files")).await,
        }
    }

    fn hold(&self, hold: HoldRequest) -> WardenReply {
        let highest = *self.highest.borrow();
        let epoch = match hold {
            HoldRequest::As(epoch) => epoch,
            HoldRequest::Visit => highest,
        };
        if epoch < highest {
            return WardenReply::HeldBy(highest);
        }
        // Its own word first: this link is not below the one that it says.
        self.said.send_replace(Some(epoch));
        self.highest.send_replace(epoch);
        WardenReply::Done
    }

    fn end(&self, run: &RunId) -> bool {
        let running = lock(&self.running);
        running.get(run).map(CancellationToken::cancel).is_some()
    }

    async fn speak_with(&self, run: RunRequest, caller: StandInCaller) {
        let voice = caller.voice();
        let Some(folder) = self.commands.folder() else {
            return voice.fail(&refused("a stand-in has no programs")).await;
        };
        voice.say(FrameKind::Started, &encode(&1_u32)).await;
        let end = CancellationToken::new();
        lock(&self.running).insert(run.id.clone(), end.clone());
        let (status, cut) = piped::run(folder, &self.sandbox, &run, caller, end).await;
        lock(&self.running).remove(&run.id);
        voice.ended(&ended(status, cut)).await;
    }

    async fn run(&self, id: RunId, text: &str, limit: Option<Duration>, mut caller: StandInCaller) {
        let voice = caller.voice();
        voice.say(FrameKind::Started, &encode(&1_u32)).await;
        let end = CancellationToken::new();
        lock(&self.running).insert(id.clone(), end.clone());
        let gone = async { while caller.next().await.is_some() {} };
        // Said while it runs, as a real warden does.
        let (said, mut heard) = mpsc::channel::<Vec<u8>>(8);
        let tell = async {
            while let Some(output) = heard.recv().await {
                for chunk in output.chunks(CHUNK) {
                    voice.say(FrameKind::Out, chunk).await;
                }
            }
        };
        let run = async {
            let (code, ()) = tokio::join!(self.commands.run(&self.sandbox, text, said), tell);
            code
        };
        let over = tokio::select! {
            over = timeout(limit.unwrap_or(Duration::MAX), run) => over.map_err(|_| CutReason::TimedOut),
            () = end.cancelled() => Err(CutReason::Killed),
            () = gone => Err(CutReason::Killed),
        };
        lock(&self.running).remove(&id);
        let (status, cut) = match over {
            Ok(code) => (ExitState::Exited(code), None),
            Err(cut) => (ExitState::Signalled(9), Some(cut)),
        };
        voice.ended(&ended(status, cut)).await;
    }
}

/// `bash -c TEXT`, or a program with its words.
fn text_of(run: &RunRequest) -> String {
    let words = run.argv.iter().map(|word| String::from_utf8_lossy(&word.0));
    match words.clone().nth(1).as_deref() {
        Some("-c") => words.skip(2).collect(),
        _ => words.collect::<Vec<_>>().join(" "),
    }
}

fn ended(status: ExitState, cut: Option<CutReason>) -> CommandEnd {
    CommandEnd {
        status,
        cut,
        usage: CommandUsage::default(),
        killed_for_memory: false,
        leftovers: 0,
        cwd: None,
        shell_fresh: false,
        shell_lost: None,
    }
}

fn info() -> WardenInfo {
    WardenInfo {
        version: VERSION,
        pid: 0,
        rss_bytes: 0,
        uptime: Duration::ZERO,
        clients: 1,
        runs: 0,
        shells: 0,
        listeners: 0,
    }
}

fn refused(text: &str) -> WardenFailure {
    WardenFailure {
        kind: FailureKind::Refused,
        errno: None,
        text: text.to_owned(),
    }
}
