//! How an older database becomes one of today, next to programs that still run.

use std::borrow::Cow;
use std::collections::BTreeSet;

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

/// In the order they are applied; the numbers are those of SQLite's steps, of which the first file holds all
/// up to its own. A landed migration is never edited. Each one leaves a database that the program of the step
/// before can still use: see `docs/decisions/0181-one-schema-step-apart.md`.
pub(super) const MIGRATIONS: [(i64, &str, &str); 7] = [
    (
        109,
        "schema",
        include_str!("../../../migrations/postgres/0109_schema.sql"),
    ),
    (
        185,
        "leases",
        include_str!("../../../migrations/postgres/0185_leases.sql"),
    ),
    (
        186,
        "gateway_names",
        include_str!("../../../migrations/postgres/0186_gateway_names.sql"),
    ),
    (
        195,
        "agent_settings",
        include_str!("../../../migrations/postgres/0195_agent_settings.sql"),
    ),
    (
        200,
        "job_terms",
        include_str!("../../../migrations/postgres/0200_job_terms.sql"),
    ),
    (
        210,
        "several_gateways",
        include_str!("../../../migrations/postgres/0210_several_gateways.sql"),
    ),
    (
        300,
        "sandbox_events",
        include_str!("../../../migrations/postgres/0300_sandbox_events.sql"),
    ),
];

/// So many steps ahead of a program the database may be.
const STEPS_AHEAD: usize = 1;

/// Held while somebody looks at the schema and changes it. Any number will do that nobody else uses.
const SCHEMA_LOCK: i64 = 0x4865_726d_6574_6963;

/// Brings it up to date; one process at a time.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
    // By the session, not by a transaction: each migration is a transaction of its own, and all of
    // them have to be under one lock.
    lock(connection, "SELECT pg_advisory_lock($1)").await?;
    let migrated = migrate_alone(connection).await;
    // A connection that broke has no lock left to give back.
    let unlocked = lock(connection, "SELECT pg_advisory_unlock($1)").await;
    migrated.and(unlocked.map_err(MigrateError::from))
}

async fn migrate_alone(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let ahead: Vec<_> = applied(connection)
        .await?
        .into_iter()
        .filter(|version| MIGRATIONS.iter().all(|(ours, ..)| ours != version))
        .collect();
    let ours = MIGRATIONS.iter().map(|(version, ..)| *version).max();
    let strange = ahead.iter().find(|version| Some(**version) < ours);
    if let Some(version) = strange.or(ahead.get(STEPS_AHEAD)) {
        return Err(MigrateError::VersionMissing(*version));
    }
    migrator().run_direct(None, connection, false).await
}

async fn lock(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    let locked = sqlx::query(sql).bind(SCHEMA_LOCK).execute(connection);
    locked.await.map(drop)
}

/// The versions that the database went through, in their order; none for one that is new.
pub(super) async fn applied(connection: &mut PgConnection) -> Result<BTreeSet<i64>, sqlx::Error> {
    let table = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    if !sqlx::query_scalar(table)
        .fetch_one(&mut *connection)
        .await?
    {
        return Ok(BTreeSet::new());
    }
    let versions = "SELECT version FROM _sqlx_migrations";
    let versions: Vec<i64> = sqlx::query_scalar(versions).fetch_all(connection).await?;
    Ok(versions.into_iter().collect())
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(
            version,
            Cow::Borrowed(name),
            MigrationType::Simple,
            sqlx::SqlStr::from_static(sql),
            false,
        )
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    // Ours is held already, and what is ahead of us was looked at.
    migrator.set_locking(false).set_ignore_missing(true);
    migrator
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreVersion;

    #[test]
    fn both_databases_are_of_one_version() {
        let latest = MIGRATIONS.iter().map(|(version, ..)| *version).max();
        assert_eq!(latest, Some(StoreVersion::ours().0));
    }
}
