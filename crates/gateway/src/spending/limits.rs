//! What may be spent on a day.

use hermetic_agent::NanoDollars;
use hermetic_store::{SpendingAmounts, SpendingDay};

/// Bounds for one day, by whom they bind. Nothing is bounded unless somebody wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingLimits {
    pub person: DayLimits,
    pub conversation: DayLimits,
    pub all: DayLimits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayLimits {
    pub dollars: Option<NanoDollars>,
    pub tokens: Option<u64>,
    pub tool_seconds: Option<u64>,
}

impl DayLimits {
    /// Bounds nothing.
    pub(super) const NONE: Self = Self {
        dollars: None,
        tokens: None,
        tool_seconds: None,
    };
}

/// What somebody is about to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum AskedFor {
    /// To ask the model, which is thought to take this.
    Request(SpendingAmounts),
    /// To run a tool. How long that takes nobody knows: it is let run while there is time left.
    Tool,
}

/// A bound that would be passed, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReachedLimit {
    pub(super) used: String,
    pub(super) limit: String,
}

impl DayLimits {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The bound that stands against it, if there is one. What is lifted has the same bound once more.
    pub(super) fn reached(&self, day: SpendingDay, asked: AskedFor) -> Option<ReachedLimit> {
        let times = 1 + u64::try_from(day.lifts).unwrap_or(0);
        let passes = |limit: u64, spent: i64, more: i64| {
            let limit = i64::try_from(limit.saturating_mul(times)).unwrap_or(i64::MAX);
            // What is spent already has reached it, or what is asked for would pass it.
            spent >= limit || spent.saturating_add(more) > limit
        };
        let spent = day.spent;
        let AskedFor::Request(more) = asked else {
            let milliseconds = self
                .tool_seconds
                .map(|seconds| seconds.saturating_mul(1000));
            let limit = milliseconds.filter(|limit| passes(*limit, spent.tool_ms, 0))?;
            return Some(ReachedLimit {
                used: (spent.tool_ms / 1000).to_string(),
                limit: format!("{} seconds of tools", limit.saturating_mul(times) / 1000),
            });
        };
        let dollars = self.dollars.map(NanoDollars::get);
        let dollars = dollars.filter(|limit| passes(*limit, spent.nanodollars, more.nanodollars));
        if let Some(limit) = dollars {
            return Some(ReachedLimit {
                used: money(spent.nanodollars),
                limit: NanoDollars::new(limit.saturating_mul(times)).to_string(),
            });
        }
        let tokens = self.tokens;
        let limit = tokens.filter(|limit| passes(*limit, spent.tokens, more.tokens))?;
        Some(ReachedLimit {
            used: spent.tokens.to_string(),
            limit: format!("{} tokens", limit.saturating_mul(times)),
        })
    }
}

pub(super) fn money(nanodollars: i64) -> String {
    NanoDollars::new(u64::try_from(nanodollars).unwrap_or(0)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_pass_a_bound_is_refused_and_a_lift_is_one_bound_more() {
        let limits = DayLimits {
            tokens: Some(100),
            ..DayLimits::default()
        };
        let tokens = |tokens| SpendingAmounts {
            tokens,
            ..SpendingAmounts::default()
        };
        let reached = |spent, lifts, more| {
            let day = SpendingDay {
                spent: tokens(spent),
                lifts,
            };
            limits
                .reached(day, AskedFor::Request(tokens(more)))
                .is_some()
        };
        assert!(!reached(0, 0, 100));
        assert!(reached(0, 0, 101));
        assert!(reached(100, 0, 0));
        assert!(!reached(100, 1, 100));
        assert!(reached(200, 1, 0));
    }
}
