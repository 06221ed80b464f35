//! Work that is due at a time.
//!
//! A moment of a job becomes a message in the name of whoever made it, in a conversation of the job's own, and
//! from there on lives like any other: let in by the rules of today, one turn, one reply through the
//! ledger. What differs is here: when a moment is due and claimed (`ticker`), what is asked of the model
//! (`job_message`), what becomes of its answer (`job_answer`), and how jobs are made and changed (`draft`,
//! `orders`, and the two ways to them: `cronjob_tool`, `cron_command`).

mod cron_command;
mod cronjob_tool;
mod draft;
mod job_answer;
mod job_message;
mod orders;
mod overview;
mod ticker;

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_store::JobBounds;
use hermetic_types::{AccountId, ChatPlace, Platform};
use jiff::tz::TimeZone;

pub(crate) use cronjob_tool::CronjobTool;
pub use draft::{JobDelivery, JobDraft, JobOrder, JobRefused};
pub use job_message::job_origin;
pub use overview::{described_job, listed_job, shown_moment};

/// What scheduled work may take.
#[derive(Clone, Debug)]
pub struct ScheduleSettings {
    /// In which times of day are meant.
    pub zone: TimeZone,
    pub bounds: JobBounds,
    /// Jobs that run at once.
    pub max_parallel_jobs: u32,
    /// Two moments of one job are not closer than this.
    pub shortest_interval: Duration,
    /// A run that takes longer is ended.
    pub longest_run: Duration,
    /// Whether what a job says begins with its name.
    pub wrap_response: bool,
    /// Where a platform's own words go.
    pub home_channels: BTreeMap<Platform, HomeChannel>,
}

/// A chat to which jobs may be sent, and the account that speaks there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeChannel {
    pub account: AccountId,
    pub place: ChatPlace,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            zone: TimeZone::UTC,
            bounds: JobBounds {
                of_person: 20,
                of_all: 500,
            },
            max_parallel_jobs: 4,
            shortest_interval: Duration::from_secs(60),
            longest_run: Duration::from_secs(1800),
            wrap_response: true,
            home_channels: BTreeMap::new(),
        }
    }
}

/// So many failures in a row are told to whoever looks at the gateway.
pub(crate) const FAILS_AGAIN: u32 = 3;
/// After so many a job is paused: each of them tells its person, and costs.
pub(crate) const PAUSED_AFTER: u32 = 10;
