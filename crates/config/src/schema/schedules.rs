//! `cron:`, `delegation:`, `timezone`: work on a schedule, and work that is handed on.

use super::{DAY, SchemaKey, ValueShape, count, key, seconds};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "timezone",
            ValueShape::Text,
            "",
            "the zone in which times of schedules are meant, as in Europe/Berlin; the machine's own if not written",
        )
        .overruled_by("HERMES_TIMEZONE"),
        key(
            "cron.max_parallel_jobs",
            count(0, 1000),
            "4",
            "jobs that run at once, others wait; 16 at most, and for 0",
        )
        .overruled_by("HERMES_CRON_MAX_PARALLEL"),
        key(
            "cron.wrap_response",
            ValueShape::Flag,
            "true",
            "begin what a job says with its name",
        ),
        key(
            "cron.max_jobs_per_person",
            count(0, 10_000),
            "20",
            "jobs that one person may have",
        ),
        key(
            "cron.max_jobs",
            count(0, 100_000),
            "500",
            "jobs that all people together may have",
        ),
        key(
            "cron.shortest_interval",
            seconds(DAY),
            "60",
            "seconds that lie between two moments of one job at least",
        ),
        key(
            "cron.max_run_seconds",
            seconds(DAY),
            "1800",
            "seconds after which a run of a job is ended",
        ),
        key(
            "delegation.max_concurrent_children",
            count(1, 1000),
            "3",
            "subagents at once, and in one call of delegate_task; 16 at most",
        )
        .mirrored_by("DELEGATION_MAX_CONCURRENT_CHILDREN"),
        key(
            "delegation.max_iterations",
            count(1, 100_000),
            "50",
            "steps of one subagent",
        ),
    ]
}
