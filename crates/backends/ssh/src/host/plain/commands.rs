//! The warden's calls, each as a channel of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use hermetic_types::RunId;
use hermetic_warden::protocol::frame::FrameKind;
use hermetic_warden::protocol::hello::VERSION;
use hermetic_warden::protocol::{
    ByteString, CommandEnd, CommandUsage, CutReason, ExitState, FailureKind, KillRequest,
    OutputStreams, RunRequest, ShellLost, ShellRequest, StdinMode, WardenFailure, WardenInfo,
    WardenReply, WardenRequest, encode,
};
use hermetic_warden::stand_in::{self, CallerStream, StandInCaller};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::last_word::LastWord;
use super::line::{ScriptWork, carry, command, end_marked, run_mark, sandbox_mark};
use crate::host::channel::SshChannel;
use crate::host::ssh::SshState;
use crate::order::RemoteSandbox;

const CHUNK: usize = 64 << 10;

/// How long output that was written before the end may take to arrive after it.
const LAST_BYTES: Duration = Duration::from_millis(300);

/// One sandbox's commands.
#[derive(Debug)]
pub(super) struct PlainCommands {
    host: Arc<SshState>,
    lodging: RemoteSandbox,
    workdir: String,
    born: Instant,
    running: Mutex<HashMap<RunId, Arc<PlainCommand>>>,
}

/// A command on its way.
#[derive(Debug)]
struct PlainCommand {
    end_asked: Notify,
    /// Closed when it is over.
    over: Semaphore,
}

impl PlainCommands {
    pub(super) fn new(host: Arc<SshState>, lodging: RemoteSandbox, all: &str) -> Arc<Self> {
        let own = format!("{all}/{}/work", lodging.id);
        Arc::new(Self {
            workdir: lodging.workdir.clone().unwrap_or(own),
            host,
            lodging,
            born: Instant::now(),
            running: Mutex::default(),
        })
    }

    pub(super) fn answers(self: Arc<Self>) -> stand_in::Answer {
        Arc::new(move |request, caller| {
            let this = Arc::clone(&self);
            async move { this.answer(request, caller).await }.boxed()
        })
    }

    /// The link is gone; so is what lives by it.
    pub(super) async fn leave(&self) {
        if self.lodging.tied {
            let line = format!(
                "exec sh -c '{}'",
                end_marked(&sandbox_mark(&self.lodging.id))
            );
            let _ = self.host.line(&line, &[]).await;
        }
    }

    async fn answer(&self, request: WardenRequest, caller: StandInCaller) {
        let voice = caller.voice();
        match request {
            WardenRequest::Run(run) => self.run(run, caller, None).await,
            WardenRequest::Shell(shell) => {
                self.run(alone(&shell), caller, Some(ShellLost::Exited))
                    .await;
            }
            WardenRequest::Kill(KillRequest::Run(id)) => match self.kill(&id).await {
                true => voice.reply(&WardenReply::Done).await,
                false => voice.fail(&no_such_run(&id)).await,
            },
            WardenRequest::Attach(request) | WardenRequest::Look(request) => {
                voice.fail(&no_such_run(&request.id)).await;
            }
            WardenRequest::Runs => voice.reply(&WardenReply::Runs(Vec::new())).await,
            WardenRequest::Info => voice.reply(&WardenReply::Info(self.info())).await,
            // There is nobody on the host who could keep the last one away.
            WardenRequest::Hold(_) => voice.fail(&knows_no_holders()).await,
            _ => {
                voice
                    .fail(&refused("the host has a plain shell only"))
                    .await;
            }
        }
    }

    async fn run(&self, run: RunRequest, caller: StandInCaller, shell_lost: Option<ShellLost>) {
        let voice = caller.voice();
        let channel = match self.start(&run).await {
            Ok(channel) => channel,
            Err(failure) => return voice.fail(&failure).await,
        };
        voice.say(FrameKind::Started, &encode(&0_u32)).await;
        let going = Arc::new(PlainCommand {
            end_asked: Notify::new(),
            over: Semaphore::new(0),
        });
        // Before the command can end: who wants to kill it must find it from the first moment on.
        self.running().insert(run.id.clone(), Arc::clone(&going));
        let ended = self.follow(&run, channel, caller, &going.end_asked).await;
        self.running().remove(&run.id);
        // After it was taken out: whoever waited for the end finds nothing to end any more.
        going.over.close();
        match ended {
            Ok((status, cut)) => {
                voice.ended(&end(status, cut, shell_lost)).await;
            }
            Err(failure) => voice.fail(&failure).await,
        }
    }

    async fn start(&self, run: &RunRequest) -> Result<(SshChannel, String), WardenFailure> {
        if matches!(run.output, OutputStreams::Pty(_)) {
            return Err(refused("no terminal over a plain shell"));
        }
        let text =
            |(name, value): (&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let marks = [sandbox_mark(&self.lodging.id), run_mark(&run.id)];
        let marks = marks.iter().filter_map(|mark| mark.split_once('='));
        let own = self
            .lodging
            .env
            .iter()
            .map(|(name, value)| text((name, value)));
        let asked = run.env.iter();
        let asked = asked.map(|(name, value)| (name.0.clone(), value.0.clone()));
        let env: Vec<(Vec<u8>, Vec<u8>)> = own.chain(asked).chain(marks.map(text)).collect();
        if env.iter().any(|(name, _)| !is_name(name)) {
            return Err(refused("a variable's name that no shell can set"));
        }
        let last_word = RunId::random().to_string();
        let script = command(&ScriptWork {
            cwd: run.cwd.as_ref(),
            default_cwd: &self.workdir,
            env: &env,
            argv: &run.argv,
            merged: run.output == OutputStreams::Merged,
        });
        let line = carry(&script).ok_or_else(|| refused("too long for a plain shell's line"))?;
        match self.host.open(&line).await {
            Ok(channel) => Ok((channel, last_word)),
            Err(error) => Err(failure(FailureKind::System, &error.to_string())),
        }
    }

    /// Until it ends, by itself or not. What was ended has nothing left.
    async fn follow(
        &self,
        run: &RunRequest,
        (channel, last_word): (SshChannel, String),
        mut caller: StandInCaller,
        end_asked: &Notify,
    ) -> Result<(ExitState, Option<CutReason>), WardenFailure> {
        let voice = caller.voice();
        let (mut stdin, mut stdout, mut stderr, _open) = channel.apart();
        // Not in the script, where the command could read it. A channel that does not take it is gone,
        // which is told below.
        let _ = stdin.write_all(format!("{last_word}\n").as_bytes()).await;
        let out = pump(&mut stdout, FrameKind::Out, &voice);
        let listen = async {
            let mut out = std::pin::pin!(out);
            let last = until_last_word(&mut stderr, &last_word, &voice);
            let mut last = std::pin::pin!(last);
            let code = tokio::select! {
                code = &mut last => code,
                // Its output is at its end, so all that may still come is the last word.
                () = &mut out => return last.await,
            };
            // What it left in the background may hold its output open for ever.
            let _ = timeout(LAST_BYTES, out).await;
            code
        };
        let feed = feed(run.stdin == StdinMode::Open, stdin, &mut caller, &voice);
        let limit = run.timeout.unwrap_or(Duration::MAX);
        let code = tokio::select! {
            ended = timeout(limit, listen) => ended.map_err(|_| CutReason::TimedOut),
            () = end_asked.notified() => Err(CutReason::Killed),
            () = feed => Err(CutReason::Killed),
        };
        match code {
            Ok(Some(code)) => Ok((ExitState::Exited(code), None)),
            Ok(None) => Err(failure(
                FailureKind::System,
                "the link to the host dropped; whether the command still runs there is not known",
            )),
            Err(cut) => {
                let line = format!("exec sh -c '{}'", end_marked(&run_mark(&run.id)));
                // By a channel of its own: the command's may be stuck, and closing it ends nothing
                // over there.
                match self.host.line(&line, &[]).await {
                    Ok(said) if said.code == Some(0) => Ok((ExitState::Signalled(9), Some(cut))),
                    _ => Err(failure(
                        FailureKind::System,
                        "it was to be ended, and some of its processes may be left there",
                    )),
                }
            }
        }
    }

    async fn kill(&self, id: &RunId) -> bool {
        let Some(going) = self.running().get(id).cloned() else {
            return false;
        };
        going.end_asked.notify_one();
        // An error says that it is over.
        let _ = going.over.acquire().await.is_err();
        true
    }

    fn info(&self) -> WardenInfo {
        WardenInfo {
            version: VERSION,
            pid: 0,
            rss_bytes: 0,
            uptime: self.born.elapsed(),
            clients: 1,
            runs: u32::try_from(self.running().len()).unwrap_or(u32::MAX),
            shells: 0,
            listeners: 0,
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<PlainCommand>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller's words into the command, until he is gone or wants it to end.
async fn feed(open: bool, stdin: ChildStdin, caller: &mut StandInCaller, voice: &CallerStream) {
    let mut stdin = open.then_some(stdin);
    while let Some(frame) = caller.next().await {
        match frame.kind {
            FrameKind::Stdin => {
                if let Some(to) = &mut stdin {
                    let _ = to.write_all(&frame.payload).await;
                }
                // Told even where nobody reads: the sender would otherwise wait for credit to the
                // end of its days.
                let taken = u32::try_from(frame.payload.len()).unwrap_or(u32::MAX);
                voice.say(FrameKind::StdinTaken, &encode(&taken)).await;
            }
            FrameKind::StdinEnd => stdin = None,
            FrameKind::Signal => return,
            _ => {}
        }
    }
}

async fn pump(from: &mut (impl AsyncRead + Unpin), kind: FrameKind, voice: &CallerStream) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        voice.say(kind, &buffer[..length]).await;
    }
}

/// Passes stderr on up to the line that our script ends with, which has the exit code. Nothing if
/// that never comes.
async fn until_last_word(
    from: &mut (impl AsyncRead + Unpin),
    word: &str,
    voice: &CallerStream,
) -> Option<i32> {
    let mut last = LastWord::new(word);
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let (said, code) = last.push(&buffer[..length]);
        for piece in said.chunks(CHUNK) {
            voice.say(FrameKind::Err, piece).await;
        }
        if code.is_some() {
            return code;
        }
    }
    voice.say(FrameKind::Err, &last.rest()).await;
    None
}

/// A command for a shell that does not last.
fn alone(shell: &ShellRequest) -> RunRequest {
    let argv: [ByteString; 3] = ["bash".into(), "-c".into(), shell.text.clone()];
    let mut run = RunRequest::new(argv);
    run.id = shell.id.clone();
    run.cwd = shell.cwd.clone();
    run.timeout = shell.timeout;
    run
}

fn end(status: ExitState, cut: Option<CutReason>, shell_lost: Option<ShellLost>) -> CommandEnd {
    CommandEnd {
        status,
        cut,
        usage: CommandUsage::default(),
        killed_for_memory: false,
        leftovers: 0,
        cwd: None,
        shell_fresh: shell_lost.is_some(),
        shell_lost,
    }
}

fn is_name(name: &[u8]) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.iter().all(word) && name.first().is_some_and(|first| !first.is_ascii_digit())
}

/// As an earlier warden answers.
fn knows_no_holders() -> WardenFailure {
    WardenFailure {
        kind: FailureKind::BadRequest,
        errno: None,
        text: "a plain shell knows no holders".into(),
    }
}

fn refused(why: &str) -> WardenFailure {
    failure(FailureKind::Refused, why)
}

fn no_such_run(id: &RunId) -> WardenFailure {
    failure(FailureKind::NoSuchRun, &format!("no run {id}"))
}

fn failure(kind: FailureKind, text: &str) -> WardenFailure {
    WardenFailure {
        kind,
        errno: None,
        text: text.to_owned(),
    }
}
