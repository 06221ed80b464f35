//! A command run to its end.

use std::convert::Infallible;

use hermetic_warden::client::{CallError, Event, Running};
use hermetic_warden::protocol::{Cut, Ended, Status};
use tokio_util::sync::CancellationToken;

use crate::HeadTail;

#[derive(Clone, Debug)]
pub struct Finished {
    pub stdout: HeadTail,
    pub stderr: HeadTail,
    pub ended: Ended,
    /// Set when the caller's `stop` ended it.
    pub interrupted: bool,
}

/// SIGKILL, for [`Finished::code`].
const KILLED: i32 = 9;

impl Finished {
    /// As a shell would say it: the exit code, 128 + signal, 124 for a timeout, 130 if interrupted.
    pub fn code(&self) -> i32 {
        match (self.interrupted, self.ended.cut, self.ended.status) {
            (true, ..) => 130,
            (_, Some(Cut::TimedOut), _) => 124,
            (.., Status::Exited(code)) => code,
            (.., Status::Signalled(signal)) => 128 + signal,
            (.., Status::Unknown) => 128 + KILLED,
        }
    }
}

/// Follows a command to its end, feeding it `stdin` meanwhile. When `stop` is cancelled, `end` is
/// polled, which has to bring the command's end about.
pub async fn gather(
    mut running: Running,
    stdin: Option<Vec<u8>>,
    bound: usize,
    stop: &CancellationToken,
    end: impl Future<Output = Result<(), CallError>>,
) -> Result<Finished, CallError> {
    let (mut stdout, mut stderr) = (HeadTail::new(bound), HeadTail::new(bound));
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
        let _ = end.await;
        std::future::pending::<Infallible>().await
    };
    let follow = async {
        loop {
            match running.next().await? {
                Some(Event::Out(bytes)) => stdout.push(&bytes),
                Some(Event::Err(bytes)) => stderr.push(&bytes),
                Some(Event::Skipped(lost)) => stdout.skip(lost),
                Some(Event::Started { .. }) => {}
                Some(Event::Ended(ended)) => return Ok(ended),
                None => return Err(CallError::LinkLost),
            }
        }
    };
    let ended = tokio::select! {
        ended = follow => ended?,
        never = feed => match never {},
        never = stopped => match never {},
    };
    Ok(Finished {
        stdout,
        stderr,
        ended,
        interrupted,
    })
}
