//! Slack's tiers, and waiting when it says so.
//!
//! Slack counts calls by method and workspace, and messages by channel. We stay below what it writes
//! down and wait where it asks for more than that. Edits of answers that still grow are worth least, so
//! they leave some calls for the edits that matter.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_types::ChatId;
use tokio::time::Instant;

/// Calls that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateTier {
    /// `chat.postMessage`: one a second in a channel, and a few at once.
    Post(ChatId),
    /// `chat.update`: fifty a minute.
    Update,
    /// `conversations.history` and its kin: fifty a minute.
    History,
    /// Everything else that writes: a hundred a minute.
    Other,
}

/// Channels of which a count is kept; one that is forgotten is one that was quiet.
const MOST_COUNTS: usize = 4096;
/// Updates that growing answers leave for others.
const LEFT_BY_REFRESH: f64 = 5.0;

#[derive(Debug, Default)]
pub(crate) struct CallPace {
    counts: Mutex<HashMap<RateTier, TierCount>>,
}

/// How many calls may be made now, and until when none.
#[derive(Clone, Copy, Debug)]
struct TierCount {
    left: f64,
    at: Instant,
    held_until: Instant,
}

impl CallPace {
    /// Takes one call; how long to wait instead, if there is none left.
    pub(crate) fn reserve(&self, tier: RateTier) -> Duration {
        self.reserve_leaving(tier, 0.0)
    }

    /// The same for an edit that is worth nothing late.
    pub(crate) fn reserve_refresh(&self) -> Duration {
        self.reserve_leaving(RateTier::Update, LEFT_BY_REFRESH)
    }

    /// None before this time, as Slack asked for.
    pub(crate) fn hold(&self, tier: RateTier, wait: Duration) {
        let now = Instant::now();
        let full = tier.burst();
        let mut counts = self.lock(now);
        let count = counts
            .entry(tier)
            .or_insert_with(|| TierCount::new(full, now));
        count.held_until = count.held_until.max(now + wait);
    }

    fn reserve_leaving(&self, tier: RateTier, leaving: f64) -> Duration {
        let now = Instant::now();
        let (burst, rate) = (tier.burst(), tier.rate());
        let mut counts = self.lock(now);
        let count = counts
            .entry(tier)
            .or_insert_with(|| TierCount::new(burst, now));
        // Slack's own word before our count: it knows of calls that others made with this token.
        if count.held_until > now {
            return count.held_until - now;
        }
        let passed = now.duration_since(count.at).as_secs_f64();
        // Never more than a burst: a quiet night must not be saved up for a flood in the morning.
        count.left = (count.left + passed * rate).min(burst);
        count.at = now;
        let missing = 1.0 + leaving - count.left;
        if missing > 0.0 {
            // Never zero, or whoever waits would ask at once again.
            return Duration::from_secs_f64(missing / rate).max(Duration::from_millis(1));
        }
        count.left -= 1.0;
        Duration::ZERO
    }

    fn lock(&self, now: Instant) -> MutexGuard<'_, HashMap<RateTier, TierCount>> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST_COUNTS {
            const QUIET: Duration = Duration::from_secs(60);
            counts.retain(|_, count| count.held_until > now || count.at + QUIET > now);
        }
        counts
    }
}

impl RateTier {
    /// Calls at once.
    fn burst(&self) -> f64 {
        match self {
            Self::Post(_) => 5.0,
            Self::Update | Self::History | Self::Other => 20.0,
        }
    }

    /// Calls a second.
    fn rate(&self) -> f64 {
        match self {
            Self::Post(_) => 1.0,
            Self::Update | Self::History => 50.0 / 60.0,
            Self::Other => 100.0 / 60.0,
        }
    }
}

impl TierCount {
    fn new(left: f64, now: Instant) -> Self {
        Self {
            left,
            at: now,
            held_until: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_tier_is_never_exceeded_and_always_goes_on() {
        let pace = CallPace::default();
        let begun = Instant::now();
        let mut calls = 0;
        while begun.elapsed() < 10 * MINUTE {
            match pace.reserve(RateTier::Update) {
                Duration::ZERO => calls += 1,
                wait => tokio::time::advance(wait).await,
            }
        }
        assert!((500..=521).contains(&calls), "{calls} in ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn one_channel_waits_alone_and_growing_answers_leave_some() {
        let pace = CallPace::default();
        let [one, two] = ["C1", "C2"].map(|id| RateTier::Post(ChatId::new(id).unwrap()));
        pace.hold(one.clone(), MINUTE);
        assert_eq!(
            (pace.reserve(one.clone()), pace.reserve(two)),
            (MINUTE, Duration::ZERO)
        );
        tokio::time::advance(MINUTE).await;
        assert_eq!(pace.reserve(one), Duration::ZERO);
        while pace.reserve_refresh().is_zero() {}
        assert_eq!(pace.reserve(RateTier::Update), Duration::ZERO);
    }
}
