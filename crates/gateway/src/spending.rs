//! Budgets: what a day may cost, counted before it is spent.

mod book;
mod commands;
mod limits;
mod meter;
mod services;
#[cfg(test)]
mod tests;

pub(crate) use book::SpendingBook;
pub use limits::{DayLimits, SpendingLimits};
pub(crate) use meter::TurnMeter;
pub(crate) use services::ServiceMeter;
pub use services::ServicePrices;
