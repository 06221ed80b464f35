//! A command run to its end.

use std::convert::Infallible;
use std::time::Duration;

use hermetic_warden::client::{RunEvent, RunningCommand, WardenCallError};
use hermetic_warden::protocol::{CommandEnd, CommandUsage, CutReason, ExitState};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{HeadTail, OutputListener, OutputStream};

#[derive(Clone, Debug)]
pub struct FinishedCommand {
    pub stdout: HeadTail,
    pub stderr: HeadTail,
    pub ended: CommandEnd,
    /// Set when the caller's `stop` ended it.
    pub interrupted: bool,
    /// Set when the link dropped meanwhile.
    pub dropped: Option<DroppedLink>,
}

/// What becomes of a command's output while it runs.
#[derive(Clone, Copy, Debug)]
pub struct OutputTerms<'a> {
    /// Bytes of each stream that are kept.
    pub bound: usize,
    /// Somebody who hears all of it.
    pub listener: Option<&'a dyn OutputListener>,
}

impl OutputTerms<'_> {
    /// Kept, and heard by nobody before the command has ended.
    pub fn kept(bound: usize) -> Self {
        Self {
            bound,
            listener: None,
        }
    }
}

/// What is known of a command whose link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DroppedLink {
    /// The link came back, and nothing is missing.
    PickedUp,
    /// The host cannot be reached. The command ran when the link dropped; its timeout ends it there.
    StillRunning,
    /// The host was reached and knows nothing of it. What it did is not known.
    Lost,
    /// The sandbox ended under it. What had been read is there, what it did after that is not known.
    SandboxEnded,
}

/// SIGKILL, for [`FinishedCommand::code`].
const KILLED: i32 = 9;

/// As ssh says it of a connection that broke.
const UNKNOWN_END: i32 = 255;

impl FinishedCommand {
    /// As a shell would say it: the exit code, 128 + signal, 124 for a timeout, 130 if interrupted,
    /// 255 where nobody knows.
    pub fn code(&self) -> i32 {
        if self
            .dropped
            .is_some_and(|known| known != DroppedLink::PickedUp)
        {
            return UNKNOWN_END;
        }
        match (self.interrupted, self.ended.cut, self.ended.status) {
            (true, ..) => 130,
            (_, Some(CutReason::TimedOut), _) => 124,
            (.., ExitState::Exited(code)) => code,
            (.., ExitState::Signalled(signal)) => 128 + signal,
            (.., ExitState::Unknown) => 128 + KILLED,
        }
    }
}

/// What a warden may take to end a command, and again to say so.
const END_GRACE: Duration = Duration::from_secs(15);

/// Follows a command to its end, feeding it `stdin` meanwhile. When `stop` is cancelled, `end` is
/// polled, which has to bring the command's end about; a warden that does not is left.
///
/// A link that is lost after some output ends the command with what was read: whoever filled the disk
/// wants to see how far it came.
pub async fn gather(
    mut running: RunningCommand,
    stdin: Option<Vec<u8>>,
    kept: OutputTerms<'_>,
    stop: &CancellationToken,
    end: impl Future<Output = Result<(), WardenCallError>>,
) -> Result<FinishedCommand, WardenCallError> {
    let mut gathered = GatheredOutput::new(kept);
    let mut interrupted = false;
    let input = running.stdin();
    let feed = async {
        // A command that closed its stdin early is no failure of ours.
        if let Some(bytes) = stdin
            && input.write(&bytes).await.is_ok()
        {
            let _ = input.end().await;
        }
        // Never ready: the command's end decides, and it may come long after its last input.
        std::future::pending::<Infallible>().await
    };
    let stopped = async {
        stop.cancelled().await;
        interrupted = true;
        // The command may end by itself before the request arrives.
        let _ = timeout(END_GRACE, end).await;
        // The command's end is heard by following it. Whoever is still here after this time has a
        // warden that does not keep its word.
        sleep(END_GRACE).await;
    };
    let follow = gathered.follow(&mut running);
    let ended = tokio::select! {
        ended = follow => Some(ended),
        never = feed => match never {},
        () = stopped => None,
    };
    match ended.ok_or_else(|| running.given_up())? {
        Ok(ended) => Ok(gathered.finished(ended, interrupted, None)),
        Err(WardenCallError::LinkLost) if gathered.seen() > 0 => {
            let dropped = Some(DroppedLink::SandboxEnded);
            Ok(gathered.finished(unknown_end(), interrupted, dropped))
        }
        Err(error) => Err(error),
    }
}

/// Of a command whose end nobody saw.
pub(crate) fn unknown_end() -> CommandEnd {
    CommandEnd {
        status: ExitState::Unknown,
        cut: None,
        usage: CommandUsage::default(),
        killed_for_memory: false,
        leftovers: 0,
        cwd: None,
        shell_fresh: false,
        shell_lost: None,
    }
}

/// The output so far, in bounded memory.
#[derive(Debug)]
pub(crate) struct GatheredOutput<'a> {
    stdout: HeadTail,
    stderr: HeadTail,
    listener: Option<&'a dyn OutputListener>,
}

impl<'a> GatheredOutput<'a> {
    pub(crate) fn new(kept: OutputTerms<'a>) -> Self {
        Self {
            stdout: HeadTail::new(kept.bound),
            stderr: HeadTail::new(kept.bound),
            listener: kept.listener,
        }
    }

    /// How many bytes have come, those included that were not kept for us.
    pub(crate) fn seen(&self) -> u64 {
        self.stdout.total() + self.stderr.total()
    }

    pub(crate) async fn follow(
        &mut self,
        running: &mut RunningCommand,
    ) -> Result<CommandEnd, WardenCallError> {
        loop {
            match running.next().await? {
                Some(RunEvent::Out(bytes)) => {
                    // Heard whole, before anything is left out of what is kept.
                    self.tell(OutputStream::Out, &bytes);
                    self.stdout.push(&bytes);
                }
                Some(RunEvent::Err(bytes)) => {
                    self.tell(OutputStream::Err, &bytes);
                    self.stderr.push(&bytes);
                }
                Some(RunEvent::Skipped(lost)) => self.stdout.skip(lost),
                Some(RunEvent::Started { .. }) => {}
                Some(RunEvent::Ended(ended)) => return Ok(ended),
                None => return Err(WardenCallError::LinkLost),
            }
        }
    }

    fn tell(&self, stream: OutputStream, bytes: &[u8]) {
        if let Some(listener) = self.listener {
            listener.heard(stream, bytes);
        }
    }

    pub(crate) fn finished(
        self,
        ended: CommandEnd,
        interrupted: bool,
        dropped: Option<DroppedLink>,
    ) -> FinishedCommand {
        FinishedCommand {
            stdout: self.stdout,
            stderr: self.stderr,
            ended,
            interrupted,
            dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use hermetic_warden::client::{ProtocolBreach, Warden};
    use hermetic_warden::protocol::frame::FrameKind;
    use hermetic_warden::protocol::{
        FailureKind, KillRequest, RunRequest, WardenFailure, WardenRequest,
    };
    use hermetic_warden::stand_in::{StandInCaller, play};

    /// One that is well, by its own account, and never says that a command ended.
    async fn warden() -> Warden {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let answer = |request, caller: StandInCaller| {
            let well = WardenFailure {
                kind: FailureKind::Refused,
                errno: None,
                text: "I am well".to_owned(),
            };
            let pending = async move {
                match request {
                    WardenRequest::Info => caller.voice().fail(&well).await,
                    _ => std::future::pending().await,
                }
            };
            Box::pin(pending) as futures::future::BoxFuture<'static, ()>
        };
        tokio::spawn(play(theirs, Arc::new(answer)));
        Warden::greet(ours, END_GRACE).await.unwrap()
    }

    async fn ended(timeout: Option<Duration>, stop: CancellationToken) -> WardenCallError {
        let warden = warden().await;
        let mut run = RunRequest::new(["true"]);
        run.timeout = timeout;
        let id = run.id.clone();
        let running = warden.run(run).await.unwrap();
        let end = warden.kill(KillRequest::Run(id));
        let gathered = gather(running, None, OutputTerms::kept(100), &stop, end)
            .await
            .unwrap_err();
        warden.closed().await;
        gathered
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_whose_time_is_over_is_not_waited_for_for_ever() {
        let ended = ended(Some(Duration::from_secs(180)), CancellationToken::new()).await;
        assert!(matches!(
            ended,
            WardenCallError::Breach(ProtocolBreach::Unending)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn nor_is_one_that_was_told_to_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        let ended = ended(None, stop).await;
        assert!(matches!(
            ended,
            WardenCallError::Breach(ProtocolBreach::Unending)
        ));
    }

    /// Says something of the command and then falls silent, as one does whose sandbox is ended.
    #[tokio::test(start_paused = true)]
    async fn what_was_read_before_the_sandbox_ended_is_kept() {
        for said in ["begun\n", ""] {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let answer = move |_, caller: StandInCaller| {
                let speaking = async move {
                    if !said.is_empty() {
                        caller.voice().say(FrameKind::Out, said.as_bytes()).await;
                    }
                    std::future::pending::<()>().await;
                };
                Box::pin(speaking) as futures::future::BoxFuture<'static, ()>
            };
            let link = tokio::spawn(play(theirs, Arc::new(answer)));
            let warden = Warden::greet(ours, END_GRACE).await.unwrap();
            let running = warden.run(RunRequest::new(["true"])).await.unwrap();
            // The clock moves when everything that was said has arrived.
            let cut = async {
                sleep(Duration::from_millis(1)).await;
                link.abort();
                std::future::pending::<Result<(), WardenCallError>>().await
            };
            let stop = CancellationToken::new();
            let gathering = gather(
                running,
                None,
                OutputTerms::kept(100),
                &stop,
                std::future::pending(),
            );
            let gathered = tokio::select! {
                gathered = gathering => gathered,
                _ = cut => return,
            };
            match gathered {
                Ok(finished) => {
                    assert_eq!(finished.stdout.clone().into_bytes(), said.as_bytes());
                    assert_eq!(finished.dropped, Some(DroppedLink::SandboxEnded));
                    assert_eq!(finished.code(), UNKNOWN_END);
                }
                Err(error) => assert!(said.is_empty(), "{error}"),
            }
        }
    }
}
