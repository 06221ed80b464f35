//! Our own standard streams, signals and exit code, tied to a command's.

use std::io::IsTerminal;

use hermetic_policy::Cleared;
use hermetic_sandbox::{RunError, Sandbox};
use hermetic_types::BackendKind;
use hermetic_warden::client::{RunEvent, RunningCommand, WardenCallError};
use hermetic_warden::protocol::{CommandEnd, CutReason, ExitState, FailureKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::warn;

use super::judging::ReadInput;
use super::terminal::RawTerminal;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;

const SIGINT: i32 = 2;
/// What a shell says of a command that a signal ended: 128 and its number.
const INTERRUPTED: u8 = 128 + 2;
const BROKEN_PIPE: u8 = 128 + 13;
const TERMINATED: u8 = 128 + 15;
const CHUNK: usize = 64 << 10;

pub(in crate::commands) async fn run(
    sandbox: &Sandbox,
    (command, read): (Cleared, ReadInput),
    tty: bool,
) -> Result<ExitReason, CommandFailure> {
    let raw = (tty && std::io::stdin().is_terminal())
        .then(RawTerminal::enter)
        .transpose()?;
    // Before there is a command: a signal that came in between would end us and not it.
    let asked_to_end = EndSignals::listen()?;
    let running = match sandbox.start(command).await {
        Ok(running) => running,
        Err(error) => return not_started(&error),
    };
    let input = tokio::spawn(feed(running.stdin(), read));
    let ended = follow(running, asked_to_end, sandbox.kind()).await;
    input.abort();
    // Before anybody says how it ended: on a raw terminal a line begins where the last one stopped.
    drop(raw);
    ended
}

/// What was read of our stdin and then the rest of it, into the command's. Ends with either.
async fn feed(stdin: hermetic_warden::client::StdinStream, ReadInput(read): ReadInput) {
    for chunk in read.chunks(CHUNK) {
        if stdin.write(chunk).await.is_err() {
            return;
        }
    }
    let mut ours = tokio::io::stdin();
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = ours.read(&mut buffer).await {
        if stdin.write(&buffer[..length]).await.is_err() {
            return;
        }
    }
    let _ = stdin.end().await;
}

/// The signals by which a person ends a command.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    fn listen() -> Result<Self, CommandFailure> {
        let failed = |error: std::io::Error| CommandFailure::caused(&error, "report this as a bug");
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }
}

async fn follow(
    mut running: RunningCommand,
    mut asked_to_end: EndSignals,
    kind: BackendKind,
) -> Result<ExitReason, CommandFailure> {
    let (mut out, mut err) = (tokio::io::stdout(), tokio::io::stderr());
    let mut asked = 0;
    loop {
        let event = tokio::select! {
            event = running.next() => event,
            _ = asked_to_end.interrupt.recv() => {
                asked += 1;
                // Dropping it ends the whole tree; a second request does not wait for politeness.
                if asked > 1 {
                    return Ok(ExitReason::Passed(INTERRUPTED));
                }
                let _ = running.signal(SIGINT).await;
                continue;
            }
            _ = asked_to_end.terminate.recv() => return Ok(ExitReason::Passed(TERMINATED)),
        };
        let gone = match event {
            Ok(Some(RunEvent::Out(bytes))) => write(&mut out, &bytes).await,
            Ok(Some(RunEvent::Err(bytes))) => write(&mut err, &bytes).await,
            Ok(Some(RunEvent::Ended(ended))) => return Ok(said(&ended)),
            Ok(Some(RunEvent::Started { .. } | RunEvent::Skipped(_))) => false,
            Ok(None) | Err(WardenCallError::LinkLost) => return Err(lost(kind)),
            Err(error) => return not_started(&RunError::Call(error)),
        };
        // A reader who has gone away (`| head`) ends the command, as a pipe would.
        if gone {
            return Ok(ExitReason::Passed(BROKEN_PIPE));
        }
    }
}

/// Whether our reader has gone.
async fn write(to: &mut (impl tokio::io::AsyncWrite + Unpin), bytes: &[u8]) -> bool {
    let written = async {
        to.write_all(bytes).await?;
        to.flush().await
    };
    written.await.is_err()
}

fn said(ended: &CommandEnd) -> ExitReason {
    if ended.killed_for_memory {
        warn!("the memory limit was reached and something was ended for it");
    }
    match (ended.cut, ended.status) {
        (Some(CutReason::TimedOut), _) => {
            warn!("timed out: the command and all it started were ended");
            ExitReason::Passed(124)
        }
        (_, ExitState::Exited(code)) => ExitReason::Passed(u8::try_from(code & 0xff).unwrap_or(1)),
        (_, ExitState::Signalled(signal)) => {
            ExitReason::Passed(u8::try_from(128 + (signal & 0x7f)).unwrap_or(255))
        }
        (_, ExitState::Unknown) => ExitReason::Passed(128 + 9),
    }
}

fn not_started(error: &RunError) -> Result<ExitReason, CommandFailure> {
    let code = match error {
        RunError::Call(WardenCallError::Failed(failure)) => match failure.kind {
            FailureKind::ProgramNotFound => 127,
            FailureKind::ProgramNotStarted | FailureKind::WorkingDirectory => 126,
            _ => 125,
        },
        _ => 125,
    };
    Err(CommandFailure::caused(
        error,
        "check the command's name and folder inside the sandbox",
    )
    .with(code))
}

fn lost(kind: BackendKind) -> CommandFailure {
    if kind == BackendKind::Ssh {
        return CommandFailure::new(
            "the link to the host dropped before the command had ended",
            "without --session the command is ended there, and what it did is done; look before \
             you run it again",
        );
    }
    if matches!(
        kind,
        BackendKind::Kubernetes | BackendKind::Modal | BackendKind::Daytona
    ) {
        return CommandFailure::new(
            "the link to the sandbox dropped before the command had ended",
            "the sandbox ended, or something on the way to it was restarted; the command is ended there, \
             and what it did is done; look before you run it again",
        );
    }
    CommandFailure::new(
        "the sandbox ended before its command did",
        "it may have reached its memory or disk limit; `hermetic doctor` tells how those are kept",
    )
}
