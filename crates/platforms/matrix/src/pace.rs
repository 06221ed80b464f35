//! How much may be said before the homeserver asks for a pause.
//!
//! Synapse as it comes lets an account send ten events at once and then one in five seconds; each edit of
//! an answer that grows is one. So edits that only show progress take what is to spare, and half of the
//! allowance is left for what has to be said.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::MatrixTiming;

#[derive(Debug)]
pub(crate) struct EventBudget {
    burst: f64,
    refill: Duration,
    state: Mutex<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    left: f64,
    counted_at: Instant,
    /// The homeserver asked for a pause until then.
    held_until: Option<Instant>,
}

impl EventBudget {
    pub(crate) fn new(timing: &MatrixTiming) -> Self {
        let burst = f64::from(timing.burst.max(2));
        Self {
            burst,
            refill: timing.refill,
            state: Mutex::new(BudgetState {
                left: burst,
                counted_at: Instant::now(),
                held_until: None,
            }),
        }
    }

    /// An event is sent that has to be.
    pub(crate) fn spend(&self) {
        self.with(|state, _| state.left = (state.left - 1.0).max(0.0));
    }

    /// Takes one for what can be left out. How long to wait, if there is none to spare.
    pub(crate) fn spare(&self) -> Result<(), Duration> {
        let reserve = self.burst / 2.0;
        self.with(|state, now| {
            if let Some(held) = state.held_until.filter(|until| *until > now) {
                return Err(held - now);
            }
            if state.left >= reserve + 1.0 {
                state.left -= 1.0;
                return Ok(());
            }
            Err(self.refill.mul_f64(reserve + 1.0 - state.left))
        })
    }

    /// The homeserver asked for a pause: nothing is left.
    pub(crate) fn exhausted(&self, wait: Duration) {
        self.with(|state, now| {
            state.left = 0.0;
            state.held_until = Some(now + wait);
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut BudgetState, Instant) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let passed = now
            .saturating_duration_since(state.counted_at)
            .as_secs_f64();
        let refilled = passed / self.refill.as_secs_f64().max(f64::EPSILON);
        state.left = (state.left + refilled).min(self.burst);
        state.counted_at = now;
        act(&mut state, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn growing_answers_leave_half_of_what_synapse_allows() {
        let budget = EventBudget::new(&MatrixTiming::default());
        let shown = (0..100).filter(|_| budget.spare().is_ok()).count();
        assert_eq!(shown, 5);
        let wait = budget.spare().unwrap_err();
        assert_eq!(wait, Duration::from_secs(5));
        tokio::time::advance(wait).await;
        assert!(budget.spare().is_ok());
        assert!(budget.spare().is_err());
        // What has to be said is said, and paid for.
        budget.spend();
        assert!(budget.spare().unwrap_err() > Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_was_asked_for_is_kept() {
        let budget = EventBudget::new(&MatrixTiming::default());
        budget.exhausted(Duration::from_secs(60));
        assert_eq!(budget.spare(), Err(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(budget.spare().is_ok());
    }
}
