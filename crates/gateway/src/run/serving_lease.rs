//! The right to serve an installation that several gateways share: of one at a time, or of all that share the work.
//!
//! Whoever holds the lease serves; those that may not serve beside it stand by and look at it. A holder that cannot say that it lives
//! stops before anybody may take its place: it counts from the moment it *sent* its last sign of life, and its
//! [`CUT_AFTER`] is shorter than the database's [`DEAD_AFTER`]. A holder that was asleep all that time, and
//! wakes when it is over, has a clock that went on: [`LeaseClock::is_held`] says no before it says a word, and
//! the store takes nothing from it.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_store::{
    DEAD_AFTER, GatewayProcess, HeldLease, LastBeat, LeaseHints, LeaseHolder, LeaseRows,
    LeaseState, SERVING, StoreError,
};
use hermetic_types::{HealthReport, SharedClock};
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How often a holder says that it lives.
const BEAT: Duration = Duration::from_secs(3);

/// How soon it tries again when that failed.
const BEAT_AGAIN: Duration = Duration::from_millis(500);

/// A holder that could not say so for this long ends itself. Shorter than [`DEAD_AFTER`] by more than a look at
/// the lease takes.
const CUT_AFTER: Duration = Duration::from_secs(10);
const _: () = assert!(CUT_AFTER.as_secs() + 3 < DEAD_AFTER.as_secs());

/// How often somebody who stands by looks, where no word comes that it should.
const LOOK: Duration = Duration::from_secs(2);

/// Somebody who stands by says that it is there with every such look.
const LOOKS_FOR_A_BEAT: u32 = 2;

/// The right to serve. It is kept by a task of its own until it is released, lost or dropped.
#[derive(Debug)]
pub struct ServingLease {
    rows: LeaseRows,
    process: GatewayProcess,
    held: HeldLease,
    clock: LeaseClock,
    health: HealthReport,
    loss: watch::Receiver<Option<LeaseLoss>>,
    keeper: JoinHandle<()>,
}

/// Whether the lease is held, to be asked before each act that cannot be taken back. Clones are of one lease.
#[derive(Clone, Debug)]
pub struct LeaseClock(Arc<Mutex<Renewed>>);

#[derive(Debug)]
struct Renewed {
    /// When the last sign of life that was heard had been sent.
    at: BootMoment,
    lost: bool,
}

/// By the kernel's clock that stops neither with this process nor while the whole machine sleeps. The runtime's
/// own does the latter: a laptop that was shut for an hour would believe that it serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct BootMoment(Duration);

/// How somebody stands by.
pub struct StandByTerms {
    pub clock: SharedClock,
    /// Whether it may serve beside others that may, too.
    pub shares: bool,
    /// Ends it.
    pub stop: CancellationToken,
    /// Hears once that this process waits, and for whom.
    pub waits: Box<dyn Fn(&LeaseHolder) + Send + Sync>,
}

/// What somebody who stands by has seen so far.
struct StandByWait {
    hints: LeaseHints,
    looks: u32,
    beat: LastBeat,
    /// Since when it is the same.
    since: BootMoment,
}

/// Why a gateway serves no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LeaseLoss {
    #[error("another gateway has taken over")]
    Taken,
    #[error("the database could not be told for 10 s that this gateway lives")]
    Silent,
}

/// Why a gateway may not even stand by.
#[derive(Debug, Error)]
pub enum StandByError<R> {
    #[error("the lease could not be looked at")]
    Store(#[from] StoreError),
    #[error("refused")]
    Refused(R),
    #[error("told to end while another gateway serves")]
    Stopped,
}

impl ServingLease {
    /// Waits until nobody else serves, and takes the lease. `admit` is asked before, with how the lease stands:
    /// a gateway that could not go on where the last one left off must not begin.
    pub async fn stand_by<R, A>(
        rows: LeaseRows,
        process: &GatewayProcess,
        terms: StandByTerms,
        admit: impl Fn(LeaseState) -> A,
    ) -> Result<Self, StandByError<R>>
    where
        A: Future<Output = Result<(), R>>,
    {
        let mut wait: Option<StandByWait> = None;
        let ended = loop {
            match attempt(&rows, (process, terms.shares), &admit, wait.as_mut()).await {
                Ok(LeaseAttempt::Claimed(held, sent)) => {
                    let epoch = held.epoch();
                    tracing::info!(epoch, gateway = process.id.as_str(), "serving from now on");
                    return Ok(Self::keep((rows, process.clone()), held, sent, terms.clock));
                }
                Ok(LeaseAttempt::Held(holder)) if wait.is_none() => {
                    tracing::info!(
                        serving = holder.gateway,
                        version = holder.version,
                        "another gateway serves this installation; standing by"
                    );
                    rows.join(process).await?;
                    (terms.waits)(&holder);
                    wait = Some(StandByWait::begin(&rows, &holder).await);
                }
                Ok(LeaseAttempt::Held(_) | LeaseAttempt::Missed) => {}
                // Whoever waits already waits for a database, too.
                Err(StandByError::Store(error)) if wait.is_some() => {
                    tracing::warn!(%error, "the lease could not be looked at or claimed");
                }
                Err(error) => break error,
            }
            if let Some(wait) = &mut wait {
                wait.is_here(&rows, process).await;
            }
            let told = async {
                match &mut wait {
                    Some(wait) => wait.hints.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = terms.stop.cancelled() => break StandByError::Stopped,
                () = told => {}
                () = sleep(LOOK) => {}
            }
        };
        if wait.is_some() {
            // Who is gone without a word is taken out later.
            let _ = rows.leave(process).await;
        }
        Err(ended)
    }

    fn keep(
        (rows, process): (LeaseRows, GatewayProcess),
        held: HeldLease,
        sent: BootMoment,
        clock: SharedClock,
    ) -> Self {
        let renewed = Renewed {
            at: sent,
            lost: false,
        };
        let lease_clock = LeaseClock(Arc::new(Mutex::new(renewed)));
        let (tell, loss) = watch::channel(None);
        let health = HealthReport::default();
        let keeping = keep(
            (rows.clone(), held.clone()),
            lease_clock.clone(),
            (health.clone(), clock),
            tell,
        );
        Self {
            rows,
            process,
            held,
            clock: lease_clock,
            health,
            loss,
            keeper: tokio::spawn(keeping),
        }
    }

    /// What the store's writes are to depend on.
    pub fn held(&self) -> HeldLease {
        self.held.clone()
    }

    /// Who holds it.
    pub fn process(&self) -> &GatewayProcess {
        &self.process
    }

    pub fn clock(&self) -> LeaseClock {
        self.clock.clone()
    }

    /// Whether signs of life are heard.
    pub fn health(&self) -> HealthReport {
        self.health.clone()
    }

    /// Returns when the lease is lost.
    pub async fn lost(&self) -> LeaseLoss {
        let mut loss = self.loss.clone();
        let told = loss.wait_for(Option::is_some).await;
        // The task that tells ends after it has told, unless it panicked.
        told.ok()
            .and_then(|loss| *loss)
            .unwrap_or(LeaseLoss::Silent)
    }

    /// Gives it back: whoever stands by goes on at its next look.
    pub async fn release(self) {
        // In this order: no sign of life after it was given back, and no word in a chat once
        // somebody else may speak.
        self.keeper.abort();
        self.clock.lose();
        if let Err(error) = self.rows.release(&self.held).await {
            tracing::warn!(%error, "the lease was not given back; others wait until it is over");
        }
    }
}

impl Drop for ServingLease {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl LeaseClock {
    /// Whether this process may still act.
    pub fn is_held(&self) -> bool {
        let renewed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !renewed.lost && renewed.at.elapsed() < CUT_AFTER
    }

    fn renewed(&self, sent: BootMoment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at = sent;
    }

    fn lose(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lost = true;
    }

    /// What is left until the holder has to end itself.
    fn left(&self) -> Duration {
        let renewed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        CUT_AFTER.saturating_sub(renewed.at.elapsed())
    }
}

/// One look at the lease, and what came of it.
enum LeaseAttempt {
    /// Ours, by a claim that was sent then.
    Claimed(HeldLease, BootMoment),
    Held(LeaseHolder),
    /// Somebody else was faster.
    Missed,
}

/// Looks, and claims what nobody alive holds. Whether this process may go on is asked when it comes first and
/// before each claim, and not with every look: nobody waits for the answer in between.
async fn attempt<R, A>(
    rows: &LeaseRows,
    (process, shares): (&GatewayProcess, bool),
    admit: &impl Fn(LeaseState) -> A,
    wait: Option<&mut StandByWait>,
) -> Result<LeaseAttempt, StandByError<R>>
where
    A: Future<Output = Result<(), R>>,
{
    let state = rows.look(SERVING).await?;
    let holder = state.as_ref().and_then(|state| state.holder.clone());
    let is_first = wait.is_none();
    let silent_since = match (&holder, wait) {
        (Some(holder), Some(wait)) => wait.silent_since(holder),
        _ => None,
    };
    let may_join = shares && holder.as_ref().is_some_and(LeaseHolder::is_together);
    let may_claim = holder.is_none() || silent_since.is_some() || may_join;
    if let Some(state) = state
        && (is_first || may_claim)
    {
        admit(state).await.map_err(StandByError::Refused)?;
    }
    if let Some(holder) = holder
        && !may_claim
    {
        return Ok(LeaseAttempt::Held(holder));
    }
    let sent = BootMoment::now();
    let claimed = match shares {
        true => rows.join_serving(process, silent_since).await?,
        false => rows.claim_from(SERVING, process, silent_since).await?,
    };
    Ok(claimed.map_or(LeaseAttempt::Missed, |held| {
        LeaseAttempt::Claimed(held, sent)
    }))
}

impl StandByWait {
    async fn begin(rows: &LeaseRows, holder: &LeaseHolder) -> Self {
        Self {
            hints: rows.hints().await,
            looks: 0,
            beat: holder.beat,
            since: BootMoment::now(),
        }
    }

    /// The holder's last sign of life, if there was no other for so long that it is dead by our own clock too.
    fn silent_since(&mut self, holder: &LeaseHolder) -> Option<LastBeat> {
        if self.beat != holder.beat {
            self.beat = holder.beat;
            self.since = BootMoment::now();
        }
        (self.since.elapsed() >= DEAD_AFTER).then_some(self.beat)
    }

    /// Says so from time to time.
    async fn is_here(&mut self, rows: &LeaseRows, process: &GatewayProcess) {
        if self.looks.is_multiple_of(LOOKS_FOR_A_BEAT)
            && let Err(error) = rows.is_here(process).await
        {
            tracing::debug!(%error, "nobody is told that this gateway stands by");
        }
        self.looks = self.looks.wrapping_add(1);
    }
}

impl BootMoment {
    pub(super) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanos))
    }

    pub(super) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

impl fmt::Debug for StandByTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandByTerms").finish_non_exhaustive()
    }
}

/// Says that the holder lives, until that is not so.
async fn keep(
    (rows, held): (LeaseRows, HeldLease),
    lease: LeaseClock,
    (health, clock): (HealthReport, SharedClock),
    tell: watch::Sender<Option<LeaseLoss>>,
) {
    let mut next = BEAT;
    let loss = loop {
        sleep(next.min(lease.left())).await;
        // Also where nobody took it meanwhile: an answer that comes at this very moment would revive a holder whose
        // every act was refused a moment ago.
        if lease.left().is_zero() {
            break LeaseLoss::Silent;
        }
        let sent = BootMoment::now();
        // Not longer than the lease lasts: a renewal that hangs would be awaited while somebody
        // else serves.
        match timeout(lease.left(), rows.renew(&held)).await {
            Ok(Ok(true)) => {
                lease.renewed(sent);
                health.recovered();
                next = BEAT;
            }
            // Certain, unlike an error: there is nothing to try again.
            Ok(Ok(false)) => break LeaseLoss::Taken,
            Ok(Err(error)) => {
                health.degraded(
                    "the database does not hear that this gateway lives",
                    clock.now(),
                );
                tracing::warn!(%error, "the lease could not be renewed");
                next = BEAT_AGAIN;
            }
            Err(_) => {}
        }
    };
    lease.lose();
    tracing::error!(%loss, "this gateway serves no longer");
    tell.send_replace(Some(loss));
}

#[cfg(test)]
#[path = "serving_lease_tests.rs"]
mod tests;
