//! What tokens cost.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::TokenUsage;

/// An amount of money, exact enough for one token of the cheapest model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NanoDollars(u64);

/// The price of a million tokens, by what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPrice {
    pub input: NanoDollars,
    pub output: NanoDollars,
    /// Input from the provider's cache; as other input where nobody says.
    pub cached_input: Option<NanoDollars>,
    /// Input that is written into the cache; as other input where nobody says.
    pub cache_write: Option<NanoDollars>,
}

const PER_DOLLAR: f64 = 1e9;

impl NanoDollars {
    pub const ZERO: Self = Self(0);

    pub fn new(nanodollars: u64) -> Self {
        Self(nanodollars)
    }

    /// An amount as people and providers write it. Nothing for what is no amount.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let nano = dollars * PER_DOLLAR;
        // Far below where a u64 ends, so the cast is exact to the nanodollar or so.
        let fits = nano.is_finite() && (0.0..=9e18).contains(&nano);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "its range was just looked at"
        )]
        fits.then_some(Self(nano.round() as u64))
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// For people and for JSON; sums are made of the exact amount.
    #[expect(clippy::cast_precision_loss, reason = "nobody counts with it")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PER_DOLLAR
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    fn for_tokens(self, tokens: u64) -> u128 {
        u128::from(self.0) * u128::from(tokens)
    }
}

/// In dollars: to the cent from one dollar on, below it as exactly as six digits can say it.
impl fmt::Display for NanoDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if dollars > 0 {
            return write!(f, "${dollars}.{:02}", rest / 10_000_000);
        }
        let digits = format!("{:06}", rest / 1000);
        let exact = digits.trim_end_matches('0');
        write!(f, "$0.{exact:0<2}")
    }
}

impl TokenPrice {
    /// The higher of two, kind by kind: no usage costs more by either.
    #[must_use]
    pub fn dearer(self, other: Self) -> Self {
        let either = |one: Option<NanoDollars>, two: Option<NanoDollars>| {
            // Where nobody says, it costs what other input does.
            Some(one.unwrap_or(self.input).max(two.unwrap_or(other.input)))
        };
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached_input: either(self.cached_input, other.cached_input),
            cache_write: either(self.cache_write, other.cache_write),
        }
    }

    /// What this usage costs.
    pub fn of(&self, usage: TokenUsage) -> NanoDollars {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let fresh = usage.input_tokens - cached - written;
        let total = self.input.for_tokens(fresh)
            + self.cached_input.unwrap_or(self.input).for_tokens(cached)
            + self.cache_write.unwrap_or(self.input).for_tokens(written)
            + self.output.for_tokens(usage.output_tokens);
        NanoDollars(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(amount: f64) -> NanoDollars {
        NanoDollars::from_dollars(amount).expect("an amount")
    }

    #[test]
    fn cached_written_and_fresh_input_have_prices_of_their_own() {
        let price = TokenPrice {
            input: dollars(3.0),
            output: dollars(15.0),
            cached_input: Some(dollars(0.3)),
            cache_write: Some(dollars(3.75)),
        };
        let usage = TokenUsage {
            input_tokens: 1_000_000,
            cached_tokens: 600_000,
            cache_write_tokens: 200_000,
            output_tokens: 100_000,
            ..TokenUsage::default()
        };
        assert_eq!(price.of(usage), dollars(0.6 + 0.18 + 0.75 + 1.5));
    }

    #[test]
    fn the_dearer_of_two_prices_is_so_in_every_kind() {
        let price = |input, output, cached: Option<f64>| TokenPrice {
            input: dollars(input),
            output: dollars(output),
            cached_input: cached.map(dollars),
            cache_write: None,
        };
        // By their sums the first is dearer, and a long prompt costs more by the second.
        let dearer = price(1.0, 20.0, Some(0.1)).dearer(price(10.0, 2.0, None));
        let expected = TokenPrice {
            cache_write: Some(dollars(10.0)),
            ..price(10.0, 20.0, Some(10.0))
        };
        assert_eq!(dearer, expected);
    }

    #[test]
    fn figures_that_cannot_be_do_not_break_the_sum() {
        let price = TokenPrice {
            input: NanoDollars(u64::MAX),
            output: NanoDollars(u64::MAX),
            cached_input: None,
            cache_write: None,
        };
        let usage = TokenUsage {
            input_tokens: 1,
            cached_tokens: u64::MAX,
            cache_write_tokens: u64::MAX,
            output_tokens: u64::MAX,
            ..TokenUsage::default()
        };
        assert_eq!(price.of(usage), NanoDollars(u64::MAX));
    }

    #[test]
    fn amounts_are_shown_in_dollars() {
        let shown = [0.0, 0.000_012, 0.009, 0.01, 1.5, 1234.567].map(|a| dollars(a).to_string());
        assert_eq!(
            shown,
            ["$0.00", "$0.000012", "$0.009", "$0.01", "$1.50", "$1234.56"]
        );
        for wrong in [f64::NAN, -1.0, f64::INFINITY, 1e12] {
            assert_eq!(NanoDollars::from_dollars(wrong), None);
        }
    }
}
