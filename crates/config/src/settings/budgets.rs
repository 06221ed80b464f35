//! What a day may cost.

use super::pick::SettingPicker;

/// Bounds for one day. What nobody wrote is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetsConfig {
    pub person: DayBudget,
    pub conversation: DayBudget,
    /// Everybody together.
    pub all: DayBudget,
    pub prices: ServicePriceConfig,
}

/// Dollars for services beside the model. What nobody wrote is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServicePriceConfig {
    pub search: Option<f64>,
    pub picture: Option<f64>,
    pub transcript: Option<f64>,
    pub speech: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DayBudget {
    pub dollars: Option<f64>,
    pub tokens: Option<u64>,
    pub tool_seconds: Option<u64>,
    /// Bytes that leave sandboxes.
    pub bytes_out: Option<u64>,
}

impl BudgetsConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        let of = |scope: &str| DayBudget {
            dollars: pick.maybe_number(&format!("budgets.{scope}.dollars")),
            tokens: pick.maybe_count(&format!("budgets.{scope}.tokens")),
            tool_seconds: pick.maybe_count(&format!("budgets.{scope}.tool_seconds")),
            bytes_out: pick.maybe_bytes(&format!("budgets.{scope}.bytes_out")),
        };
        Self {
            person: of("person"),
            conversation: of("conversation"),
            all: of("all"),
            prices: ServicePriceConfig {
                search: pick.maybe_number("budgets.prices.search"),
                picture: pick.maybe_number("budgets.prices.picture"),
                transcript: pick.maybe_number("budgets.prices.transcript"),
                speech: pick.maybe_number("budgets.prices.speech"),
            },
        }
    }
}
