//! Where one conversation ends and the next begins.

use std::time::Duration;

use super::pick::{SettingPicker, words};

#[derive(Clone, Debug)]
pub struct SessionsConfig {
    pub reset: ResetMode,
    /// Of the daily reset.
    pub reset_hour: u8,
    /// Of the idle reset.
    pub reset_idle: Duration,
    pub reset_notify: bool,
    pub reset_notify_exclude: Vec<String>,
    pub background_max_age: Duration,
    pub group_per_user: bool,
    pub thread_per_user: bool,
    pub reset_triggers: Vec<String>,
    pub max_concurrent_sessions: Option<usize>,
    pub max_age_days: u32,
    pub filter_silence_narration: bool,
    pub watchdog: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetMode {
    None,
    Daily,
    Idle,
    Both,
}

words!(ResetMode { "none" => None, "daily" => Daily, "idle" => Idle, "both" => Both });

impl SessionsConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        let minutes: u64 = pick.count("session_reset.idle_minutes");
        let hours: u64 = pick.count("session_reset.bg_process_max_age_hours");
        Self {
            reset: pick.choice("session_reset.mode"),
            reset_hour: pick.count("session_reset.at_hour"),
            reset_idle: Duration::from_secs(minutes * 60),
            reset_notify: pick.flag("session_reset.notify"),
            reset_notify_exclude: pick.texts("session_reset.notify_exclude_platforms"),
            background_max_age: Duration::from_secs(hours * 3600),
            group_per_user: pick.flag("group_sessions_per_user"),
            thread_per_user: pick.flag("thread_sessions_per_user"),
            reset_triggers: pick.texts("reset_triggers"),
            max_concurrent_sessions: pick.maybe_count("max_concurrent_sessions"),
            max_age_days: pick.count("session_store_max_age_days"),
            filter_silence_narration: pick.flag("filter_silence_narration"),
            watchdog: pick.seconds_or_never("systemd_watchdog_seconds"),
        }
    }
}
