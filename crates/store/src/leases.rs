//! What one process alone may do, and how another takes it over.
//!
//! A lease lives as long as its holder is seen: one row for the process says when that was, by the database's
//! clock, because the clocks of two machines differ. Whoever takes a lease over raises its epoch. A store that
//! is [fenced](crate::Store::fenced_by) checks holder and epoch within every transaction, so a holder that
//! slept through its end can write nothing, and with it do nothing that is written down first.

use std::time::Duration;

use hermetic_types::{GatewayId, InstallationId};

use crate::StoreError;
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};

/// A holder that was not seen for so long is dead, and others may take its leases.
pub const DEAD_AFTER: Duration = Duration::from_secs(15);

/// Whoever claims or renews goes one after the other.
const CLAIMS: &str = "leases";

#[derive(Clone, Debug)]
pub struct LeaseRows {
    database: Database,
}

/// One process that would hold leases. Each start has an id of its own: a process that lost a lease never gets
/// it back under the old name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayProcess {
    pub id: GatewayId,
    pub installation: InstallationId,
    pub host: String,
    pub version: String,
}

/// A lease that this process was given, at this epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    name: String,
    gateway: GatewayId,
    epoch: i64,
}

/// How a lease stands, as somebody sees it who does not hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseState {
    pub epoch: i64,
    /// Of whoever holds it or held it last.
    pub installation: String,
    pub host: String,
    /// Who holds it and is alive.
    pub holder: Option<LeaseHolder>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    pub gateway: String,
    pub version: String,
    /// For how long it was not seen.
    pub silent_for: Duration,
}

/// Milliseconds since 1970 by the database's clock, in the words of each database.
macro_rules! sqlite_now {
    () => {
        "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)"
    };
}
macro_rules! postgres_now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

/// A text around the clock, for both.
macro_rules! with_clock {
    ($($part:expr),+ ; $($rest:expr),+) => {
        SqlStatement::for_each(
            concat!($($part,)+ sqlite_now!(), $($rest),+),
            concat!($($part,)+ postgres_now!(), $($rest),+),
        )
    };
}

impl LeaseRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// How the lease stands; `None` if nobody ever held it.
    pub async fn look(&self, name: &str) -> Result<Option<LeaseState>, StoreError> {
        let query = with_clock!(
            "SELECT leases.epoch, leases.installation, leases.host, gateways.id, gateways.version, ";
            " - gateways.seen_at AS silent FROM leases
             LEFT JOIN gateways ON gateways.id = leases.gateway WHERE leases.name = ?"
        );
        self.database
            .read_first("look at a lease", query.bind(name), state)
            .await
    }

    /// Takes the lease if nobody alive holds it. `None` if somebody does.
    pub async fn claim(
        &self,
        name: &str,
        process: &GatewayProcess,
    ) -> Result<Option<HeldLease>, StoreError> {
        let doing = "claim a lease";
        // One claim at a time: on PostgreSQL a statement does not see the row of a process that joined beside it,
        // and would take a lease from a holder that it does not know yet.
        let statements = vec![seen(process).alone_in(CLAIMS), claimed(name, process)];
        let written = self.database.write_unfenced(doing, statements).await?;
        let row = written.get(1).and_then(StatementResult::first_row);
        let epoch = row.map(|row| row.get::<i64>(0)).transpose();
        let epoch = epoch.map_err(StoreError::while_doing(doing))?;
        Ok(epoch.map(|epoch| HeldLease {
            name: name.to_owned(),
            gateway: process.id.clone(),
            epoch,
        }))
    }

    /// Says that the holder lives. `false` if the lease is somebody else's by now: it is lost for good.
    pub async fn renew(&self, held: &HeldLease) -> Result<bool, StoreError> {
        let beat = with_clock!(
            "UPDATE gateways SET seen_at = ";
            " WHERE id = ?1 AND EXISTS
              (SELECT 1 FROM leases WHERE name = ?2 AND gateway = ?1 AND epoch = ?3)"
        )
        .bind(held.gateway.as_str())
        .bind(&held.name)
        // One after the other with claims: a claim that looked before this beat was committed would
        // take the lease from a holder that lives.
        .bind(held.epoch)
        .alone_in(CLAIMS);
        let written = self.database.write_unfenced("renew a lease", vec![beat]);
        let written = written.await?;
        Ok(written.first().is_some_and(|beat| beat.affected() > 0))
    }

    /// Gives the lease back, and with it the process: another may take it at once.
    pub async fn release(&self, held: &HeldLease) -> Result<(), StoreError> {
        let empty = SqlStatement::new(
            "UPDATE leases SET gateway = NULL WHERE name = ? AND gateway = ? AND epoch = ?",
        )
        .bind(&held.name)
        .bind(held.gateway.as_str())
        .bind(held.epoch);
        let leave =
            SqlStatement::new("DELETE FROM gateways WHERE id = ?").bind(held.gateway.as_str());
        let written = self
            .database
            .write_unfenced("release a lease", vec![empty, leave]);
        written.await.map(drop)
    }
}

impl HeldLease {
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Fails the transaction that it stands in unless the lease is still held. On PostgreSQL the row is locked
    /// too: whoever takes the lease over waits for the transactions that were let through.
    pub(crate) fn check(&self) -> SqlStatement {
        SqlStatement::for_each(
            "INSERT INTO fence_breaches (lease) SELECT CAST(?1 AS TEXT) WHERE NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?1 AND gateway = ?2 AND epoch = ?3)",
            "INSERT INTO fence_breaches (lease) SELECT CAST(?1 AS TEXT) WHERE NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?1 AND gateway = ?2 AND epoch = ?3 FOR SHARE)",
        )
        .bind(&self.name)
        .bind(self.gateway.as_str())
        .bind(self.epoch)
    }
}

/// The row of a process, seen now.
fn seen(process: &GatewayProcess) -> SqlStatement {
    SqlStatement::for_each(
        concat!(
            "INSERT INTO gateways (id, host, version, joined_at, seen_at) VALUES (?, ?, ?, ",
            sqlite_now!(),
            ", ",
            sqlite_now!(),
            ") ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        ),
        concat!(
            "INSERT INTO gateways (id, host, version, joined_at, seen_at) VALUES (?, ?, ?, ",
            postgres_now!(),
            ", ",
            postgres_now!(),
            ") ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        ),
    )
    .bind(process.id.as_str())
    .bind(&process.host)
    .bind(&process.version)
}

/// The condition stands in the statement that takes it: of two who claim at once, one gets a row back.
fn claimed(name: &str, process: &GatewayProcess) -> SqlStatement {
    let dead_after = i64::try_from(DEAD_AFTER.as_millis()).unwrap_or(i64::MAX);
    with_clock!(
        "INSERT INTO leases (name, gateway, epoch, installation, host) VALUES (?1, ?2, 1, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET gateway = excluded.gateway, epoch = leases.epoch + 1,
             installation = excluded.installation, host = excluded.host
         WHERE leases.gateway IS NULL OR NOT EXISTS
             (SELECT 1 FROM gateways WHERE gateways.id = leases.gateway AND gateways.seen_at > ";
        " - ?5) RETURNING epoch"
    )
    .bind(name)
    .bind(process.id.as_str())
    .bind(process.installation.as_str())
    .bind(&process.host)
    .bind(dead_after)
}

fn state(row: &DatabaseRow) -> Result<LeaseState, DatabaseError> {
    let silent: Option<i64> = row.get("silent")?;
    let silent = silent.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0)));
    let gateway: Option<String> = row.get("id")?;
    let version: Option<String> = row.get("version")?;
    let holder = match (gateway, version, silent) {
        (Some(gateway), Some(version), Some(silent_for)) if silent_for < DEAD_AFTER => {
            Some(LeaseHolder {
                gateway,
                version,
                silent_for,
            })
        }
        _ => None,
    };
    Ok(LeaseState {
        epoch: row.get("epoch")?,
        installation: row.get("installation")?,
        host: row.get("host")?,
        holder,
    })
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
