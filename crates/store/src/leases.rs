//! What one process alone may do, and how another takes it over.
//!
//! A lease lives as long as its holder is seen: one row for the process says when that was, by the database's
//! clock, because the clocks of two machines differ. Whoever takes a lease over raises its epoch. A store that
//! is [fenced](crate::Store::fenced_by) checks holder and epoch within every transaction, so a holder that
//! slept through its end can write nothing, and with it do nothing that is written down first.
//!
//! Signs of life are single statements on a connection of their own: they wait behind no write of a busy gateway.

use std::time::Duration;

use hermetic_types::{GatewayId, InstallationId};

use crate::StoreError;
use crate::database::{
    Database, DatabaseError, DatabaseRow, LeaseListener, SqlStatement, StatementResult,
};
use crate::shared_work::given_back;

/// The lease of whoever serves an installation: one gateway, or all that share the work together.
pub const SERVING: &str = "serving";

/// Who holds [`SERVING`] where gateways share the work. Each of them says for it that it lives, so that one that
/// would serve alone, of an earlier version too, sees a holder and stands by.
pub(crate) const TOGETHER: &str = "several";

/// The lease of one process that shares the work is called so, with its id behind.
pub(crate) const OWN_LEASE: &str = "gateway:";

/// A holder that was not seen for so long is dead, and others may take its leases.
pub const DEAD_AFTER: Duration = Duration::from_secs(15);

/// Who was not seen for so long is not even shown any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The channel on which a release is told.
const RELEASES: &str = "hermetic_releases";

/// Whoever claims goes one after the other.
pub(crate) const CLAIMS: &str = "leases";

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
    /// What people call it.
    pub name: String,
    pub version: String,
}

/// One of the processes that share the store, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenGateway {
    pub gateway: String,
    pub name: String,
    pub version: String,
    /// For how long it was not seen, by the database's clock.
    pub silent_for: Duration,
    pub serves: bool,
    /// Conversations that are its own, where several share them.
    pub conversations: u64,
}

/// The last sign of life that somebody else saw of a holder. One that stays the same means silence, whatever the
/// database's clock does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBeat(pub(crate) i64);

/// Hears when a lease is given back. It may miss that: whoever waits looks from time to time all the same.
#[derive(Debug)]
pub struct LeaseHints(Option<LeaseListener>);

/// A lease that this process was given, at this epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    name: String,
    gateway: GatewayId,
    epoch: i64,
    /// Whether [`SERVING`] is held together with others, at the same epoch.
    together: bool,
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
    pub beat: LastBeat,
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
pub(crate) use {postgres_now, sqlite_now};

/// A text around the clock, for both.
macro_rules! with_clock {
    ($($part:expr),+ ; $($rest:expr),+) => {
        SqlStatement::for_each(
            concat!($($part,)+ sqlite_now!(), $($rest),+),
            concat!($($part,)+ postgres_now!(), $($rest),+),
        )
    };
}

pub(crate) use with_clock;

impl LeaseRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// How the lease stands; `None` if nobody ever held it.
    pub async fn look(&self, name: &str) -> Result<Option<LeaseState>, StoreError> {
        let query = with_clock!(
            "SELECT leases.epoch, leases.installation, leases.host, gateways.id, gateways.version,
                    gateways.seen_at, ";
            " - gateways.seen_at AS silent FROM leases
             LEFT JOIN gateways ON gateways.id = leases.gateway WHERE leases.name = ?"
        );
        let looked = self
            .database
            .beat("look at a lease", query.bind(name), state);
        Ok(looked.await?.pop())
    }

    /// Everybody who shares the store and was seen lately; who holds the lease first.
    pub async fn gateways(&self, name: &str) -> Result<Vec<SeenGateway>, StoreError> {
        let query = with_clock!(
            "SELECT gateways.id, gateways.name, gateways.version,
                    (SELECT count(*) FROM leases WHERE leases.gateway = gateways.id
                     AND leases.name IN (?1, ?2 || gateways.id)) AS serves,
                    (SELECT count(*) FROM conversation_holders
                     WHERE conversation_holders.gateway = gateways.id) AS conversations, ";
            " - gateways.seen_at AS silent FROM gateways WHERE gateways.id <> ?3
             ORDER BY serves DESC, gateways.joined_at, gateways.id"
        );
        let query = query.bind(name).bind(OWN_LEASE).bind(TOGETHER);
        self.database
            .read("list the gateways", query, seen_gateway)
            .await
    }

    /// Says that a process is there, which holds nothing yet. Those that were not seen for long are forgotten.
    pub async fn join(&self, process: &GatewayProcess) -> Result<(), StoreError> {
        let forget = with_clock!(
            "DELETE FROM gateways WHERE seen_at < ";
            " - ? AND id NOT IN (SELECT gateway FROM leases WHERE gateway IS NOT NULL)"
        )
        .bind(millis(FORGOTTEN_AFTER));
        let statements = vec![seen(process), forget];
        let joined = self
            .database
            .write_unfenced("join the gateways", statements);
        joined.await.map(drop)
    }

    /// Says that one that stands by still does.
    pub async fn is_here(&self, process: &GatewayProcess) -> Result<(), StoreError> {
        let beat = self
            .database
            .beat("say who stands by", seen(process), |_| Ok(()));
        beat.await.map(drop)
    }

    /// Takes one out that holds nothing.
    pub async fn leave(&self, process: &GatewayProcess) -> Result<(), StoreError> {
        let left = left(process.id.as_str());
        let left = self
            .database
            .write_unfenced("leave the gateways", vec![left]);
        left.await.map(drop)
    }

    /// Hears of releases from now on.
    pub async fn hints(&self) -> LeaseHints {
        LeaseHints(self.database.listen(RELEASES).await)
    }

    /// Takes the lease if nobody alive holds it. `None` if somebody does.
    pub async fn claim(
        &self,
        name: &str,
        process: &GatewayProcess,
    ) -> Result<Option<HeldLease>, StoreError> {
        self.claim_from(name, process, None).await
    }

    /// The same from a holder of whom this stayed the last sign of life for [`DEAD_AFTER`], by the caller's own
    /// clock: the database's may have been set back, and would call it alive for as long as that was.
    pub async fn claim_from(
        &self,
        name: &str,
        process: &GatewayProcess,
        silent_since: Option<LastBeat>,
    ) -> Result<Option<HeldLease>, StoreError> {
        let doing = "claim a lease";
        // One claim at a time: on PostgreSQL a statement does not see the row of a process that joined beside it,
        // and would take a lease from a holder that it does not know yet.
        let statements = vec![
            seen(process).alone_in(CLAIMS),
            claimed(name, process, silent_since),
        ];
        let written = self.database.write_unfenced(doing, statements).await?;
        let row = written.get(1).and_then(StatementResult::first_row);
        let epoch = row.map(|row| row.get::<i64>(0)).transpose();
        let epoch = epoch.map_err(StoreError::while_doing(doing))?;
        Ok(epoch.map(|epoch| HeldLease {
            name: name.to_owned(),
            gateway: process.id.clone(),
            epoch,
            together: false,
        }))
    }

    /// Joins those that hold [`SERVING`] together, with a lease of its own. `None` if somebody alive serves alone.
    pub async fn join_serving(
        &self,
        process: &GatewayProcess,
        silent_since: Option<LastBeat>,
    ) -> Result<Option<HeldLease>, StoreError> {
        let doing = "join those who serve";
        let all = together(process);
        let own = SqlStatement::new(
            "INSERT INTO leases (name, gateway, epoch, installation, host)
             SELECT ?1 || ?2, ?2, epoch, ?3, ?4 FROM leases WHERE name = ?5 AND gateway = ?6
             RETURNING epoch",
        )
        .bind(OWN_LEASE)
        .bind(process.id.as_str())
        .bind(process.installation.as_str())
        .bind(&process.host)
        .bind(SERVING)
        .bind(TOGETHER);
        let statements = vec![
            seen(process).alone_in(CLAIMS),
            // Before they are seen: of those that all died the epoch is over.
            claimed(SERVING, &all, silent_since),
            seen(&all),
            own,
        ];
        let written = self.database.write_unfenced(doing, statements).await?;
        let row = written.get(3).and_then(StatementResult::first_row);
        let epoch = row.map(|row| row.get::<i64>(0)).transpose();
        let epoch = epoch.map_err(StoreError::while_doing(doing))?;
        Ok(epoch.map(|epoch| HeldLease {
            name: format!("{OWN_LEASE}{}", process.id.as_str()),
            gateway: process.id.clone(),
            epoch,
            together: true,
        }))
    }

    /// Says that the holder lives. `false` if the lease is somebody else's by now: it is lost for good.
    ///
    /// Needs no lock against a claim beside it: who could be claimed from was silent for longer than a holder
    /// waits for the answer to a sign of life.
    pub async fn renew(&self, held: &HeldLease) -> Result<bool, StoreError> {
        let beat = match held.together {
            false => with_clock!(
                "UPDATE gateways SET seen_at = ";
                " WHERE id = ?1 AND EXISTS
                  (SELECT 1 FROM leases WHERE name = ?2 AND gateway = ?1 AND epoch = ?3) RETURNING 1"
            ),
            true => with_clock!(
                "UPDATE gateways SET seen_at = ";
                " WHERE id IN (?1, ?5) AND EXISTS
                  (SELECT 1 FROM leases WHERE name = ?2 AND gateway = ?1 AND epoch = ?3) AND EXISTS
                  (SELECT 1 FROM leases WHERE name = ?4 AND gateway = ?5 AND epoch = ?3) RETURNING 1"
            ),
        };
        let beat = held.bound(beat);
        let seen = self
            .database
            .beat("renew a lease", beat, |_| Ok(()))
            .await?;
        Ok(!seen.is_empty())
    }

    /// Gives the lease back, and with it the process: another may take it at once, and hears of it.
    pub async fn release(&self, held: &HeldLease) -> Result<(), StoreError> {
        if held.together {
            let statements = given_back(held.gateway.as_str());
            let written = self
                .database
                .write_unfenced("leave those who serve", statements);
            return written.await.map(drop);
        }
        let empty = SqlStatement::new(
            "UPDATE leases SET gateway = NULL WHERE name = ? AND gateway = ? AND epoch = ?",
        )
        .bind(&held.name)
        .bind(held.gateway.as_str())
        .bind(held.epoch);
        let statements = vec![empty, left(held.gateway.as_str()), release_told()];
        let written = self.database.write_unfenced("release a lease", statements);
        written.await.map(drop)
    }
}

impl LeaseHolder {
    /// Whether it stands for all who share the work.
    pub fn is_together(&self) -> bool {
        self.gateway == TOGETHER
    }
}

impl LeaseHints {
    /// Returns after a release; never where none can be heard.
    pub async fn next(&mut self) {
        if let Some(listener) = &mut self.0
            && listener.heard().await
        {
            return;
        }
        self.0 = None;
        std::future::pending::<()>().await;
    }
}

impl SeenGateway {
    /// What people know it by; one of a version without names has its id.
    pub fn shown_name(&self) -> &str {
        match self.name.as_str() {
            "" => &self.gateway,
            name => name,
        }
    }

    /// In a word.
    pub fn condition(&self) -> &'static str {
        match (self.silent_for < DEAD_AFTER, self.serves) {
            (false, _) => "silent",
            (true, true) => "serving",
            (true, false) => "standing by",
        }
    }
}

impl HeldLease {
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Whether others serve beside it.
    pub fn is_together(&self) -> bool {
        self.together
    }

    pub fn gateway(&self) -> &GatewayId {
        &self.gateway
    }

    /// Fails the transaction that it stands in unless the lease is still held. On PostgreSQL the row is locked
    /// too: whoever takes the lease over waits for the transactions that were let through.
    pub(crate) fn check(&self) -> SqlStatement {
        if self.together {
            return self.check_together();
        }
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

    /// Both: somebody who serves alone takes [`SERVING`] from all who share it, and knows nothing of their own.
    fn check_together(&self) -> SqlStatement {
        let check = SqlStatement::for_each(
            "INSERT INTO fence_breaches (lease) SELECT CAST(?2 AS TEXT) WHERE NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?2 AND gateway = ?1 AND epoch = ?3) OR NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?4 AND gateway = ?5 AND epoch = ?3)",
            "INSERT INTO fence_breaches (lease) SELECT CAST(?2 AS TEXT) WHERE NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?2 AND gateway = ?1 AND epoch = ?3 FOR SHARE) OR NOT EXISTS
             (SELECT 1 FROM leases WHERE name = ?4 AND gateway = ?5 AND epoch = ?3 FOR SHARE)",
        );
        self.bound(check)
    }

    /// With the values that a statement about this lease has, as far as it has them.
    fn bound(&self, statement: SqlStatement) -> SqlStatement {
        let own = statement
            .bind(self.gateway.as_str())
            .bind(&self.name)
            .bind(self.epoch);
        match self.together {
            true => own.bind(SERVING).bind(TOGETHER),
            false => own,
        }
    }
}

/// All who share the work, as one process in the eyes of somebody who would serve alone.
fn together(process: &GatewayProcess) -> GatewayProcess {
    GatewayProcess {
        id: TOGETHER.parse().expect("letters only"),
        name: "several gateways".to_owned(),
        ..process.clone()
    }
}

/// Wakes whoever stands by.
pub(crate) fn release_told() -> SqlStatement {
    SqlStatement::for_each("SELECT ?", "SELECT pg_notify($1, '')").bind(RELEASES)
}

/// The row of a process, seen now.
fn seen(process: &GatewayProcess) -> SqlStatement {
    SqlStatement::for_each(
        concat!(
            "INSERT INTO gateways (id, host, name, version, joined_at, seen_at) VALUES (?, ?, ?, ?, ",
            sqlite_now!(),
            ", ",
            sqlite_now!(),
            ") ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        ),
        concat!(
            "INSERT INTO gateways (id, host, name, version, joined_at, seen_at) VALUES (?, ?, ?, ?, ",
            postgres_now!(),
            ", ",
            postgres_now!(),
            ") ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        ),
    )
    .bind(process.id.as_str())
    .bind(&process.host)
    .bind(&process.name)
    .bind(&process.version)
}

pub(crate) fn left(gateway: &str) -> SqlStatement {
    SqlStatement::new("DELETE FROM gateways WHERE id = ?").bind(gateway)
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The condition stands in the statement that takes it: of two who claim at once, one gets a row back.
fn claimed(name: &str, process: &GatewayProcess, silent_since: Option<LastBeat>) -> SqlStatement {
    with_clock!(
        "INSERT INTO leases (name, gateway, epoch, installation, host) VALUES (?1, ?2, 1, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET gateway = excluded.gateway, epoch = leases.epoch + 1,
             installation = excluded.installation, host = excluded.host
         WHERE leases.gateway IS NULL OR NOT EXISTS
             (SELECT 1 FROM gateways WHERE gateways.id = leases.gateway AND gateways.seen_at > ";
        " - ?5 AND gateways.seen_at <> ?6) RETURNING epoch"
    )
    .bind(name)
    .bind(process.id.as_str())
    .bind(process.installation.as_str())
    .bind(&process.host)
    .bind(millis(DEAD_AFTER))
    // No sign of life was before 1970.
    .bind(silent_since.map_or(-1, |beat| beat.0))
}

fn state(row: &DatabaseRow) -> Result<LeaseState, DatabaseError> {
    let silent = row.get::<Option<i64>>("silent")?.map(silence);
    let beat = row.get::<Option<i64>>("seen_at")?.map(LastBeat);
    let gateway: Option<String> = row.get("id")?;
    let version: Option<String> = row.get("version")?;
    let holder = match (gateway, version, silent, beat) {
        (Some(gateway), Some(version), Some(silent_for), Some(beat)) if silent_for < DEAD_AFTER => {
            Some(LeaseHolder {
                gateway,
                version,
                silent_for,
                beat,
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

fn seen_gateway(row: &DatabaseRow) -> Result<SeenGateway, DatabaseError> {
    Ok(SeenGateway {
        gateway: row.get("id")?,
        name: row.get("name")?,
        version: row.get("version")?,
        silent_for: silence(row.get("silent")?),
        serves: row.get::<i64>("serves")? > 0,
        conversations: u64::try_from(row.get::<i64>("conversations")?).unwrap_or(0),
    })
}

/// A clock that was set back makes no silence.
pub(crate) fn silence(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
