//! When something is due.
//!
//! [`Schedule`] is read from what people and models write (`in 30m`, `every 2h`, `0 9 * * 1-5`, an ISO time)
//! and tells its next moment; [`lateness`] says what becomes of one that nobody was there for. Plain
//! functions of their input: no clock is read and nothing is kept here.

#![forbid(unsafe_code)]

mod cron_expression;
mod hermes_jobs;
mod lateness;
mod phrase;
mod prompt_scan;
mod schedule;

pub use cron_expression::{CronExpression, InvalidCronExpression};
pub use hermes_jobs::{HermesJob, HermesJobs, UnreadableJobs};
pub use lateness::{Lateness, lateness};
pub use prompt_scan::{RefusedPrompt, scan_prompt};
pub use schedule::{InvalidSchedule, Schedule};
