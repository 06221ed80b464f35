//! A command run to its end.

use std::convert::Infallible;
use std::time::Duration;

use hermetic_warden::client::{CallError, Event, Running};
use hermetic_warden::protocol::{Cut, Ended, Status};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::HeadTail;

#[derive(Clone, Debug)]
pub struct Finished {
    pub stdout: HeadTail,
    pub stderr: HeadTail,
    pub ended: Ended,
    /// Set when the caller's `stop` ended it.
    pub interrupted: bool,
    /// Set when the link dropped meanwhile.
    pub dropped: Option<Dropped>,
}

/// What is known of a command whose link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The link came back, and nothing is missing.
    PickedUp,
    /// The host cannot be reached. The command ran when the link dropped; its timeout ends it there.
    StillRunning,
    /// The host was reached and knows nothing of it. What it did is not known.
    Lost,
}

/// SIGKILL, for [`Finished::code`].
const KILLED: i32 = 9;

/// As ssh says it of a connection that broke.
const UNKNOWN_END: i32 = 255;

impl Finished {
    /// As a shell would say it: the exit code, 128 + signal, 124 for a timeout, 130 if interrupted,
    /// 255 where nobody knows.
    pub fn code(&self) -> i32 {
        if matches!(self.dropped, Some(Dropped::StillRunning | Dropped::Lost)) {
            return UNKNOWN_END;
        }
        match (self.interrupted, self.ended.cut, self.ended.status) {
            (true, ..) => 130,
            (_, Some(Cut::TimedOut), _) => 124,
            (.., Status::Exited(code)) => code,
            (.., Status::Signalled(signal)) => 128 + signal,
            (.., Status::Unknown) => 128 + KILLED,
        }
    }
}

/// What a warden may take to end a command, and again to say so.
const GRACE: Duration = Duration::from_secs(15);

/// Follows a command to its end, feeding it `stdin` meanwhile. When `stop` is cancelled, `end` is
/// polled, which has to bring the command's end about; a warden that does not is left.
pub async fn gather(
    mut running: Running,
    stdin: Option<Vec<u8>>,
    bound: usize,
    stop: &CancellationToken,
    end: impl Future<Output = Result<(), CallError>>,
) -> Result<Finished, CallError> {
    let mut gathered = Gathered::new(bound);
    let mut interrupted = false;
    let input = running.stdin();
    let feed = async {
        // A command that closed its stdin early is no failure of ours.
        if let Some(bytes) = stdin
            && input.write(&bytes).await.is_ok()
        {
            let _ = input.end().await;
        }
        std::future::pending::<Infallible>().await
    };
    let stopped = async {
        stop.cancelled().await;
        interrupted = true;
        // The command may end by itself before the request arrives.
        let _ = timeout(GRACE, end).await;
        sleep(GRACE).await;
    };
    let follow = gathered.follow(&mut running);
    let ended = tokio::select! {
        ended = follow => Some(ended?),
        never = feed => match never {},
        () = stopped => None,
    };
    let ended = ended.ok_or_else(|| running.given_up())?;
    Ok(gathered.finished(ended, interrupted, None))
}

/// The output so far, in bounded memory.
#[derive(Debug)]
pub(crate) struct Gathered {
    stdout: HeadTail,
    stderr: HeadTail,
}

impl Gathered {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            stdout: HeadTail::new(bound),
            stderr: HeadTail::new(bound),
        }
    }

    /// How many bytes have come, those included that were not kept for us.
    pub(crate) fn seen(&self) -> u64 {
        self.stdout.total() + self.stderr.total()
    }

    pub(crate) async fn follow(&mut self, running: &mut Running) -> Result<Ended, CallError> {
        loop {
            match running.next().await? {
                Some(Event::Out(bytes)) => self.stdout.push(&bytes),
                Some(Event::Err(bytes)) => self.stderr.push(&bytes),
                Some(Event::Skipped(lost)) => self.stdout.skip(lost),
                Some(Event::Started { .. }) => {}
                Some(Event::Ended(ended)) => return Ok(ended),
                None => return Err(CallError::LinkLost),
            }
        }
    }

    pub(crate) fn finished(
        self,
        ended: Ended,
        interrupted: bool,
        dropped: Option<Dropped>,
    ) -> Finished {
        Finished {
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

    use hermetic_warden::client::{Breach, Warden};
    use hermetic_warden::protocol::{Failure, FailureKind, Kill, Request, Run};
    use hermetic_warden::stand_in::{Caller, play};

    /// One that is well, by its own account, and never says that a command ended.
    async fn warden() -> Warden {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let answer = |request, caller: Caller| {
            let well = Failure {
                kind: FailureKind::Refused,
                errno: None,
                text: "I am well".to_owned(),
            };
            let pending = async move {
                match request {
                    Request::Info => caller.voice().fail(&well).await,
                    _ => std::future::pending().await,
                }
            };
            Box::pin(pending) as futures::future::BoxFuture<'static, ()>
        };
        tokio::spawn(play(theirs, Arc::new(answer)));
        Warden::greet(ours, GRACE).await.unwrap()
    }

    async fn ended(timeout: Option<Duration>, stop: CancellationToken) -> CallError {
        let warden = warden().await;
        let mut run = Run::new(["true"]);
        run.timeout = timeout;
        let id = run.id.clone();
        let running = warden.run(run).await.unwrap();
        let end = warden.kill(Kill::Run(id));
        let gathered = gather(running, None, 100, &stop, end).await.unwrap_err();
        warden.closed().await;
        gathered
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_whose_time_is_over_is_not_waited_for_for_ever() {
        let ended = ended(Some(Duration::from_secs(180)), CancellationToken::new()).await;
        assert!(matches!(ended, CallError::Breach(Breach::Unending)));
    }

    #[tokio::test(start_paused = true)]
    async fn nor_is_one_that_was_told_to_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        let ended = ended(None, stop).await;
        assert!(matches!(ended, CallError::Breach(Breach::Unending)));
    }
}
