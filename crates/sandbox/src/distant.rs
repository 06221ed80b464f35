//! A command on the far side of a link that may break.
//!
//! It goes on without the link and keeps its output there, so a link that comes back finds it again.
//! It is still the caller's: when he lets go, it is ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::{HolderEpoch, RunId, SandboxId};
use hermetic_warden::client::{RunningCommand, Warden, WardenCallError};
use hermetic_warden::protocol::{FailureKind, KillRequest};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::finished::{GatheredOutput, unknown_end};
use crate::jitter::{jittered, jittered_start};
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
    (sandbox, holder): (&SandboxId, HolderEpoch),
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
        // From the byte that was seen last, so that nothing is told twice.
        let wanted = (&run, gathered.seen());
        match reach(way_back, (sandbox, holder), wanted, stop).await? {
            ReachOutcome::Running(warden, again) => {
                running = again;
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
    Running(Warden, RunningCommand),
    Nobody(DroppedLink),
}

async fn reach(
    way_back: &Arc<dyn Backend>,
    (sandbox, holder): (&SandboxId, HolderEpoch),
    (run, seen): (&RunId, u64),
    stop: &CancellationToken,
) -> Result<ReachOutcome, WardenCallError> {
    let deadline = Instant::now() + UNREACHABLE_TIMEOUT;
    let mut wait = FIRST_REACH_WAIT;
    // What ended this link may have ended a thousand: not all of them at once.
    sleep(jittered_start(FIRST_REACH_WAIT)).await;
    loop {
        match way_back.connect(sandbox).await {
            Ok(link) => match Warden::greet(link.into_stream(), GREETING).await {
                Ok(warden) => match pick_up(&warden, holder, (run, seen)).await {
                    Ok(running) => return Ok(ReachOutcome::Running(warden, running)),
                    // Dropped again: that is no other end than the first drop was.
                    Err(WardenCallError::LinkLost) => {
                        tracing::debug!(%sandbox, "the link dropped again");
                    }
                    Err(error) => return Err(error),
                },
                Err(error) => tracing::debug!(%sandbox, %error, "not there yet"),
            },
            Err(BackendError::NoSuchSandbox { .. }) => {
                return Ok(ReachOutcome::Nobody(DroppedLink::Lost));
            }
            Err(error) => tracing::debug!(%sandbox, %error, "not there yet"),
        }
        // Who wants it stopped is told at once that nothing can be done from here.
        if stop.is_cancelled() || Instant::now() >= deadline {
            return Ok(ReachOutcome::Nobody(DroppedLink::StillRunning));
        }
        tokio::select! {
            () = sleep(jittered(wait)) => {}
            () = stop.cancelled() => {}
        }
        wait = (wait * 2).min(LONGEST_REACH_WAIT);
    }
}

/// As who had the sandbox when the command began: one who has it since is not taken it from.
async fn pick_up(
    warden: &Warden,
    holder: HolderEpoch,
    (run, seen): (&RunId, u64),
) -> Result<RunningCommand, WardenCallError> {
    warden.hold(holder).await?;
    warden.attach(run.clone(), seen).await
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use hermetic_types::{BackendDescription, BackendKind};
    use hermetic_warden::protocol::{RunRequest, WardenReply, WardenRequest, hello};
    use hermetic_warden::stand_in::{StandInCaller, play};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::{BackendReadiness, FoundSandbox, SandboxSpec, WardenLink};

    /// Reached over a link that drops at once the first time, and holds the second time.
    #[derive(Debug, Default)]
    struct BadWay(AtomicUsize);

    /// Says nothing of a command before it is attached to, and then that it ended.
    fn far(stream: DuplexStream) -> impl Future<Output = ()> {
        let answer = |request, caller: StandInCaller| -> BoxFuture<'static, ()> {
            async move {
                match request {
                    WardenRequest::Attach(_) => caller.voice().ended(&unknown_end()).await,
                    WardenRequest::Hold(_) => {
                        let held = WardenReply::HeldBy(HolderEpoch::new(9));
                        caller.voice().reply(&held).await;
                    }
                    _ => std::future::pending().await,
                }
            }
            .boxed()
        };
        play(stream, Arc::new(answer))
    }

    impl Backend for BadWay {
        fn description(&self) -> BackendDescription {
            BackendDescription::sealed(BackendKind::Ssh)
        }

        fn connect<'a>(
            &'a self,
            _id: &'a SandboxId,
        ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
            let (ours, mut theirs) = duplex(1 << 16);
            if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
                tokio::spawn(far(theirs));
            } else {
                tokio::spawn(async move {
                    let mut said = [0; hello::LENGTH];
                    theirs.read_exact(&mut said).await.unwrap();
                    theirs.write_all(&hello::hello()).await.unwrap();
                });
            }
            async { Ok(WardenLink::new(ours)) }.boxed()
        }

        fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
            unreachable!("nobody asks")
        }

        fn create<'a>(
            &'a self,
            _spec: &'a SandboxSpec,
        ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
            unreachable!("it is there")
        }

        fn stop<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
            unreachable!("it goes on")
        }

        fn resume<'a>(
            &'a self,
            _spec: &'a SandboxSpec,
        ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
            unreachable!("it goes on")
        }

        fn destroy<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
            unreachable!("it goes on")
        }

        fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
            unreachable!("nobody asks")
        }
    }

    /// A command whose link is gone, followed by a gateway that has the sandbox by that epoch.
    async fn follow_as(
        holder: HolderEpoch,
    ) -> (Arc<BadWay>, Result<FinishedCommand, WardenCallError>) {
        let (ours, theirs) = duplex(1 << 16);
        let first = tokio::spawn(far(theirs));
        let warden = Warden::greet(ours, GREETING).await.unwrap();
        let mut request = RunRequest::new(["true"]);
        request.detach = true;
        let run = request.id.clone();
        let running = warden.run(request).await.unwrap();
        first.abort();
        let way = Arc::new(BadWay::default());
        let way_back: Arc<dyn Backend> = Arc::clone(&way) as _;
        let finished = follow(
            &way_back,
            (&SandboxId::random(), holder),
            warden,
            (run, running),
            OutputTerms::kept(100),
            &CancellationToken::new(),
        )
        .await;
        (way, finished)
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_of_a_sandbox_that_somebody_took_over_is_not_taken_back() {
        let (_, finished) = follow_as(HolderEpoch::new(8)).await;
        assert!(
            matches!(finished, Err(WardenCallError::HeldElsewhere { since }) if since.get() == 9),
            "{finished:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_drops_again_while_the_command_is_picked_up_is_one_more_drop() {
        let (way, finished) = follow_as(HolderEpoch::UNSHARED).await;
        assert_eq!(finished.unwrap().dropped, Some(DroppedLink::PickedUp));
        assert_eq!(way.0.load(Ordering::Relaxed), 2);
    }
}
