//! How long people were waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time in which somebody was asked. Questions at once count once. Clones share one sum.
#[derive(Clone, Debug, Default)]
pub struct ApprovalWaits {
    sum: Arc<Mutex<WaitSum>>,
}

#[derive(Debug, Default)]
struct WaitSum {
    ended: Duration,
    /// Questions that are open, and since when there are any.
    open: usize,
    since: Option<Instant>,
    /// When people were waited for, and for how long, until somebody asks.
    spells: Vec<(Instant, Duration)>,
}

/// Spells that are remembered. A script may ask more often; the rest is only in the sum.
const MOST_SPELLS: usize = 32;

/// A question that is open until this is dropped.
#[derive(Debug)]
pub struct OpenWait {
    waits: ApprovalWaits,
}

impl ApprovalWaits {
    pub fn begin(&self) -> OpenWait {
        let mut sum = self.sum();
        sum.open += 1;
        // Only the first of several begins the wait: two people asked in the same minute took one
        // minute.
        sum.since.get_or_insert_with(Instant::now);
        OpenWait {
            waits: self.clone(),
        }
    }

    /// How long it was since this was asked last.
    pub fn take(&self) -> Duration {
        std::mem::take(&mut self.sum().ended)
    }

    /// When that was, and for how long each time.
    pub fn take_spells(&self) -> Vec<(Instant, Duration)> {
        std::mem::take(&mut self.sum().spells)
    }

    fn sum(&self) -> MutexGuard<'_, WaitSum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        let mut sum = self.waits.sum();
        sum.open = sum.open.saturating_sub(1);
        if sum.open == 0
            && let Some(since) = sum.since.take()
        {
            let took = since.elapsed();
            sum.ended += took;
            if sum.spells.len() < MOST_SPELLS {
                sum.spells.push((since, took));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_at_once_count_once() {
        let waits = ApprovalWaits::default();
        let second = Duration::from_secs(1);
        let first = waits.begin();
        tokio::time::advance(second).await;
        let other = waits.begin();
        tokio::time::advance(second).await;
        drop(first);
        tokio::time::advance(second).await;
        drop(other);
        assert_eq!(waits.take(), 3 * second);
        assert_eq!(waits.take(), Duration::ZERO);
        let spells = waits.take_spells();
        assert_eq!(
            spells.iter().map(|(_, took)| *took).collect::<Vec<_>>(),
            [3 * second]
        );
        for _ in 0..100 {
            drop(waits.begin());
        }
        assert_eq!(waits.take_spells().len(), MOST_SPELLS);
        assert!(waits.take_spells().is_empty());
    }
}
