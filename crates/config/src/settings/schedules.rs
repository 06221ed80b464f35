//! Work on a schedule, and work that is handed on.

use std::time::Duration;

use super::pick::SettingPicker;

/// Hermes takes any number; each of these is a model that is asked and a sandbox at work.
const MOST_AT_ONCE: u32 = 16;

#[derive(Clone, Debug)]
pub struct SchedulesConfig {
    /// `None` for the machine's own.
    pub timezone: Option<String>,
    pub max_parallel_jobs: u32,
    pub wrap_response: bool,
    pub max_jobs_per_person: u32,
    pub max_jobs: u32,
    pub shortest_interval: Duration,
    pub longest_run: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationConfig {
    pub max_concurrent_children: usize,
    pub max_iterations: u32,
}

impl SchedulesConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        Self {
            // As Hermes writes it for the machine's own.
            timezone: pick
                .maybe_text("timezone")
                .filter(|zone| !zone.trim().is_empty()),
            max_parallel_jobs: match pick.count::<u32>("cron.max_parallel_jobs") {
                0 => MOST_AT_ONCE,
                count => count.min(MOST_AT_ONCE),
            },
            wrap_response: pick.flag("cron.wrap_response"),
            max_jobs_per_person: pick.count("cron.max_jobs_per_person"),
            max_jobs: pick.count("cron.max_jobs"),
            shortest_interval: pick.seconds("cron.shortest_interval"),
            longest_run: pick.seconds("cron.max_run_seconds"),
        }
    }
}

impl DelegationConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        Self {
            max_concurrent_children: pick
                .count::<u32>("delegation.max_concurrent_children")
                .min(MOST_AT_ONCE) as usize,
            max_iterations: pick.count("delegation.max_iterations"),
        }
    }
}
