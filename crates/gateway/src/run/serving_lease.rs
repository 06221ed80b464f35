//! One gateway at a time serves an installation that several share.
//!
//! Whoever holds the lease serves; the others stand by and look at it. A holder that cannot say that it lives
//! stops before anybody may take its place: it counts from the moment it *sent* its last sign of life, and its
//! [`CUT_AFTER`] is shorter than the database's [`DEAD_AFTER`]. A holder that was asleep all that time, and
//! wakes when it is over, has a clock that went on: [`LeaseClock::is_held`] says no before it says a word, and
//! the store takes nothing from it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermetic_store::{DEAD_AFTER, GatewayProcess, HeldLease, LeaseRows, LeaseState, StoreError};
use hermetic_types::{HealthReport, SharedClock};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The name of the lease.
const SERVING: &str = "serving";

/// How often a holder says that it lives.
const BEAT: Duration = Duration::from_secs(3);

/// How soon it tries again when that failed.
const BEAT_AGAIN: Duration = Duration::from_millis(500);

/// A holder that could not say so for this long ends itself. Shorter than [`DEAD_AFTER`] by more than a look at
/// the lease takes.
const CUT_AFTER: Duration = Duration::from_secs(10);
const _: () = assert!(CUT_AFTER.as_secs() + 3 < DEAD_AFTER.as_secs());

/// How often somebody who stands by looks.
const LOOK: Duration = Duration::from_secs(1);

/// The right to serve. It is kept by a task of its own until it is released, lost or dropped.
#[derive(Debug)]
pub struct ServingLease {
    rows: LeaseRows,
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
    /// When the last sign of life that was heard had been sent. By the kernel's clock, which does not stop with
    /// the process.
    at: Instant,
    lost: bool,
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
}

impl ServingLease {
    /// Waits until nobody else serves, and takes the lease. `admit` is asked before, with how the lease stands:
    /// a gateway that could not go on where the last one left off must not begin.
    pub async fn stand_by<R, A>(
        rows: LeaseRows,
        process: &GatewayProcess,
        clock: SharedClock,
        admit: impl Fn(LeaseState) -> A,
    ) -> Result<Self, StandByError<R>>
    where
        A: Future<Output = Result<(), R>>,
    {
        let mut has_waited = false;
        loop {
            let state = match rows.look(SERVING).await {
                Ok(state) => state,
                // Whoever waits already waits for a database, too.
                Err(error) if has_waited => {
                    tracing::warn!(%error, "the lease could not be looked at");
                    sleep(LOOK).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let holder = state.as_ref().and_then(|state| state.holder.clone());
            if let Some(state) = state {
                admit(state).await.map_err(StandByError::Refused)?;
            }
            // Before the claim leaves: the database counts from its arrival or later, so we never
            // think that we hold the lease for longer than it does.
            let sent = Instant::now();
            match holder {
                None => match rows.claim(SERVING, process).await {
                    Ok(Some(held)) => {
                        let epoch = held.epoch();
                        tracing::info!(epoch, gateway = process.id.as_str(), "serving from now on");
                        return Ok(Self::keep(rows, held, sent, clock));
                    }
                    // Somebody else was faster.
                    Ok(None) => {}
                    Err(error) if has_waited => {
                        tracing::warn!(%error, "the lease could not be claimed");
                    }
                    Err(error) => return Err(error.into()),
                },
                Some(holder) if !has_waited => {
                    has_waited = true;
                    tracing::info!(
                        serving = holder.gateway,
                        version = holder.version,
                        "another gateway serves this installation; standing by"
                    );
                }
                Some(_) => {}
            }
            sleep(LOOK).await;
        }
    }

    fn keep(rows: LeaseRows, held: HeldLease, sent: Instant, clock: SharedClock) -> Self {
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

    fn renewed(&self, sent: Instant) {
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
        // Before it is tried once more: others were promised that a silent holder has ended by now, and an
        // answer that is quicker than the timer would have it go on.
        if lease.left().is_zero() {
            break LeaseLoss::Silent;
        }
        let sent = Instant::now();
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
