//! How an older file becomes one of today.

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType, Migrator};

/// In the order they are applied. A landed migration is never edited.
pub(super) const MIGRATIONS: [(i64, &str, &str); 21] = [
    (
        1,
        "ledger",
        include_str!("../../migrations/0001_ledger.sql"),
    ),
    (
        2,
        "messages",
        include_str!("../../migrations/0002_messages.sql"),
    ),
    (
        3,
        "approvals",
        include_str!("../../migrations/0003_approvals.sql"),
    ),
    (
        5,
        "drafts",
        include_str!("../../migrations/0005_drafts.sql"),
    ),
    (
        7,
        "processes",
        include_str!("../../migrations/0007_processes.sql"),
    ),
    (
        22,
        "set_aside",
        include_str!("../../migrations/0022_set_aside.sql"),
    ),
    (
        38,
        "accounts",
        include_str!("../../migrations/0038_accounts.sql"),
    ),
    (
        40,
        "message_parts",
        include_str!("../../migrations/0040_message_parts.sql"),
    ),
    (
        43,
        "longest_yes",
        include_str!("../../migrations/0043_longest_yes.sql"),
    ),
    (
        54,
        "owners",
        include_str!("../../migrations/0054_owners.sql"),
    ),
    (
        60,
        "spending",
        include_str!("../../migrations/0060_spending.sql"),
    ),
    (
        70,
        "activity",
        include_str!("../../migrations/0070_activity.sql"),
    ),
    (
        80,
        "browser_chat",
        include_str!("../../migrations/0080_browser_chat.sql"),
    ),
    (
        82,
        "sessions",
        include_str!("../../migrations/0082_sessions.sql"),
    ),
    (
        89,
        "spending_by_name",
        include_str!("../../migrations/0089_spending_by_name.sql"),
    ),
    (
        100,
        "agents",
        include_str!("../../migrations/0100_agents.sql"),
    ),
    (
        105,
        "memory",
        include_str!("../../migrations/0105_memory.sql"),
    ),
    (
        107,
        "scheduled_jobs",
        include_str!("../../migrations/0107_scheduled_jobs.sql"),
    ),
    (
        109,
        "todo_lists",
        include_str!("../../migrations/0109_todo_lists.sql"),
    ),
    (
        185,
        "leases",
        include_str!("../../migrations/0185_leases.sql"),
    ),
    (
        186,
        "gateway_names",
        include_str!("../../migrations/0186_gateway_names.sql"),
    ),
    (
        195,
        "agent_settings",
        include_str!("../../migrations/0195_agent_settings.sql"),
    ),
];

pub(super) fn migrator() -> Migrator {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(
            version,
            Cow::Borrowed(name),
            MigrationType::Simple,
            // In a transaction each (the last word says so): killed in the middle, the file is one
            // of the version before.
            sqlx::SqlStr::from_static(sql),
            false,
        )
    });
    Migrator::with_migrations(migrations.to_vec())
}
