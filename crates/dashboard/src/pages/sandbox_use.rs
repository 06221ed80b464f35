//! What one sandbox uses of each thing it may use: the figure, its course, and its part of the limit.

use hermetic_types::{SandboxLimits, Timestamp};
use maud::{Markup, html};

use super::chart::{share, sparkline};
use super::sandboxes::SandboxRow;
use crate::use_sampler::{REMEMBERED, UsePoint};
use crate::words;

/// One of the things that a sandbox uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseKind {
    Cpu,
    Memory,
    Processes,
    Disk,
}

impl UseKind {
    pub(crate) const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Processes, Self::Disk];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "Memory",
            Self::Processes => "Processes",
            Self::Disk => "Disk",
        }
    }

    fn now(self, row: &SandboxRow) -> Option<u64> {
        match self {
            Self::Cpu => row.uses.cpu_millis,
            Self::Memory => row.uses.memory_bytes,
            Self::Processes => row.uses.pids,
            Self::Disk => row.uses.disk_bytes,
        }
    }

    /// Disk is counted too seldom to have a course.
    fn at(self, point: &UsePoint) -> Option<u64> {
        match self {
            Self::Cpu => point.cpu_millis,
            Self::Memory => point.memory_bytes,
            Self::Processes => point.pids,
            Self::Disk => None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of processors is small, and a negative one saturates to none"
    )]
    fn limit(self, limits: &SandboxLimits) -> u64 {
        match self {
            Self::Cpu => (limits.cpu * 1000.0) as u64,
            Self::Memory => limits.memory_bytes,
            Self::Processes => u64::from(limits.pids),
            Self::Disk => limits.disk_bytes,
        }
    }

    fn words(self, value: u64) -> String {
        match self {
            Self::Cpu => format!("{}.{:02}", value / 1000, value % 1000 / 10),
            Self::Memory | Self::Disk => words::bytes(value),
            Self::Processes => value.to_string(),
        }
    }
}

/// Says what is used and what may be. Takes the same room whether it is known or not.
pub(crate) fn use_cell(row: &SandboxRow, kind: UseKind, now: Timestamp) -> Markup {
    let Some(limits) = &row.limits else {
        return html! { "–" };
    };
    let limit = kind.limit(limits);
    let most = kind.words(limit);
    let used = kind.now(row);
    let told = used.map_or_else(
        || format!("{}: {}", kind.name(), why_not(row, kind)),
        |used| format!("{}: {} of {most}", kind.name(), kind.words(used)),
    );
    let course: Vec<(Timestamp, u64)> = row
        .points
        .iter()
        .filter_map(|point| Some((point.at, kind.at(point)?)))
        .collect();
    html! {
        @match used {
            Some(used) => span.used { (kind.words(used)) },
            None => span.used.dim title=(why_not(row, kind)) { "–" },
        }
        @if kind != UseKind::Disk { (sparkline(&course, now, REMEMBERED, &told)) }
        (share(used.unwrap_or_default(), limit, &told))
        span.most { "of " (most) }
    }
}

/// Why there is no figure, in words.
pub(crate) fn why_not(row: &SandboxRow, kind: UseKind) -> String {
    match kind {
        _ if row.state != "running" => "nothing runs in it".to_owned(),
        UseKind::Disk => format!("the {} backend does not count it", row.backend),
        UseKind::Cpu if row.uses.is_told => "known after two looks".to_owned(),
        _ => format!("the {} backend does not tell", row.backend),
    }
}
