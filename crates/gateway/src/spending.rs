//! Budgets: what a day may cost, counted before it is spent.

mod book;
mod commands;
mod limits;
mod meter;
#[cfg(test)]
mod tests;

pub(crate) use book::SpendingBook;
pub use limits::{DayLimits, SpendingLimits};
pub(crate) use meter::TurnMeter;
