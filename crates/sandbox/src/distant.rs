//! A command on the far side of a link that may break.
//!
//! It goes on without the link and keeps its output there, so a link that comes back finds it again.
//! It is still the caller's: when he lets go, it is ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::{RunId, SandboxId};
use hermetic_warden::client::{RunningCommand, Warden, WardenCallError};
use hermetic_warden::protocol::{FailureKind, KillRequest};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::finished::{GatheredOutput, unknown_end};
use crate::{Backend, BackendError, DroppedLink, FinishedCommand, OutputTerms};

/// How long a host may be out of reach before the caller is told. Longer than a machine needs to
/// start again its ssh server, shorter than a person waits.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(60);
const FIRST_REACH_WAIT: Duration = Duration::from_millis(200);
const LONGEST_REACH_WAIT: Duration = Duration::from_secs(5);
const GREETING: Duration = Duration::from_secs(20);

/// Follows a detached run to its end, over as many links as that takes.
pub(crate) async fn follow(
    way_back: &Arc<dyn Backend>,
    sandbox: &SandboxId,
    warden: Warden,
    (run, mut running): (RunId, RunningCommand),
    kept: OutputTerms<'_>,
    stop: &CancellationToken,
) -> Result<FinishedCommand, WardenCallError> {
    let mut guard = EndsWhenDropped::new(run.clone(), warden);
    let mut gathered = GatheredOutput::new(kept);
    let mut interrupted = false;
    let mut dropped = None;
    loop {
        let ended = {
            // Made anew for each link: a request to end it that was lost with the last one is made
            // again.
            let stopped = async {
                stop.cancelled().await;
                interrupted = true;
                // The command may end by itself before the request arrives.
                let _ = guard.warden.kill(KillRequest::Run(run.clone())).await;
                std::future::pending::<Infallible>().await
            };
            tokio::select! {
                ended = gathered.follow(&mut running) => ended,
                // Never ready: the command's end is heard by following it, with all that it still
                // had to say.
                never = stopped => match never {},
            }
        };
        match ended {
            Ok(ended) => {
                guard.disarm();
                return Ok(gathered.finished(ended, interrupted, dropped));
            }
            Err(WardenCallError::LinkLost) => {}
            Err(WardenCallError::Failed(failure))
                // Only after a drop: a warden that never knew of it has failed in another way.
                if dropped.is_some() && failure.kind == FailureKind::NoSuchRun =>
            {
                guard.disarm();
                return Ok(gathered.finished(unknown_end(), interrupted, Some(DroppedLink::Lost)));
            }
            Err(error) => return Err(error),
        }
        tracing::warn!(%sandbox, "the link dropped while a command ran");
        match reach(way_back, sandbox, stop).await {
            ReachOutcome::Warden(warden) => {
                // From the byte that was seen last, so that nothing is told twice.
                running = warden.attach(run.clone(), gathered.seen()).await?;
                guard.warden = warden;
                dropped = Some(DroppedLink::PickedUp);
            }
            ReachOutcome::Nobody(known) => {
                // Nobody to tell: the host is out of reach, and the command's own timeout ends it
                // there.
                guard.disarm();
                return Ok(gathered.finished(unknown_end(), interrupted, Some(known)));
            }
        }
    }
}

enum ReachOutcome {
    Warden(Warden),
    Nobody(DroppedLink),
}

async fn reach(
    way_back: &Arc<dyn Backend>,
    sandbox: &SandboxId,
    stop: &CancellationToken,
) -> ReachOutcome {
    let deadline = Instant::now() + UNREACHABLE_TIMEOUT;
    let mut wait = FIRST_REACH_WAIT;
    loop {
        match way_back.connect(sandbox).await {
            Ok(link) => match Warden::greet(link.into_stream(), GREETING).await {
                Ok(warden) => return ReachOutcome::Warden(warden),
                Err(error) => tracing::debug!(%sandbox, %error, "not there yet"),
            },
            Err(BackendError::NoSuchSandbox { .. }) => {
                return ReachOutcome::Nobody(DroppedLink::Lost);
            }
            Err(error) => tracing::debug!(%sandbox, %error, "not there yet"),
        }
        // Who wants it stopped is told at once that nothing can be done from here.
        if stop.is_cancelled() || Instant::now() >= deadline {
            return ReachOutcome::Nobody(DroppedLink::StillRunning);
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => {}
        }
        wait = (wait * 2).min(LONGEST_REACH_WAIT);
    }
}

/// A detached run does not notice that its caller went away, so it is told.
struct EndsWhenDropped {
    run: Option<RunId>,
    warden: Warden,
}

impl EndsWhenDropped {
    fn new(run: RunId, warden: Warden) -> Self {
        Self {
            run: Some(run),
            warden,
        }
    }

    fn disarm(&mut self) {
        self.run = None;
    }
}

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        if let (Some(run), Ok(runtime)) = (self.run.take(), tokio::runtime::Handle::try_current()) {
            let warden = self.warden.clone();
            runtime.spawn(async move { warden.kill(KillRequest::Run(run)).await });
        }
    }
}
