//! The work of gateways that serve side by side, and how it passes from one to the next.
//!
//! Each process owns the rows of its work, under its own name, and holds one lease of its own. A conversation has
//! one holder, in whose name its messages are written, whichever gateway hears them. What nobody alive holds is
//! adopted as a whole: a process's when its lease is over, and what stands under the name of the sole gateway,
//! where an orderly stop, an earlier version or a command puts it.

use std::time::Duration;

use hermetic_types::ConversationKey;

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{
    Database, DatabaseError, DatabaseRow, LeaseListener, SqlStatement, StatementResult,
};
use crate::leases::{
    CLAIMS, OWN_LEASE, SERVING, TOGETHER, left, millis, postgres_now, release_told, silence,
    sqlite_now, with_clock,
};
use crate::{
    DEAD_AFTER, DueDelivery, LastBeat, LedgerEntry, MessageRow, OpenMessage, ProcessRow,
    StoreError, deliveries, inbox, ledger, processes,
};

/// The channel on which a gateway is told that it has something to do: its id, or nothing for all.
pub(crate) const WORK: &str = "hermetic_work";

/// Under this name stands what is nobody's.
const NOBODY: &str = "gateway";

#[derive(Clone, Debug)]
pub struct SharedWork {
    database: Database,
}

/// A gateway that serves beside others, itself among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingGateway {
    pub id: String,
    /// Whether it takes conversations on.
    pub takes_on: bool,
    pub silent_for: Duration,
    pub beat: LastBeat,
}

/// What there is to do, as one look finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkAhead {
    pub gateways: Vec<ServingGateway>,
    /// Names under which work stands and that no gateway goes by.
    pub orphans: Vec<String>,
    /// This gateway's messages without an end.
    pub open: Vec<MessageRow>,
    /// Whether others have told it something.
    pub signals: bool,
}

/// The work of one that is gone, in the name of whoever adopted it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdoptedWork {
    pub messages: Vec<OpenMessage>,
    pub deliveries: Vec<DueDelivery>,
    pub sandboxes: Vec<LedgerEntry>,
    pub processes: Vec<ProcessRow>,
    /// Conversations, jobs, questions and what was said in the browser.
    pub others: u64,
}

/// Hears that there is something to do. It may miss that: whoever waits looks from time to time all the same.
#[derive(Debug)]
pub struct WorkHints {
    listener: Option<LeaseListener>,
    gateway: String,
}

/// What a row of a look is about.
const GATEWAY: i64 = 0;
const ORPHAN: i64 = 1;
const OPEN: i64 = 2;
const SIGNAL: i64 = 3;

impl SharedWork {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// One question for everything: it is asked again and again, by every gateway.
    pub async fn look(&self) -> Result<WorkAhead, StoreError> {
        let query = with_clock!(
            "SELECT 0 AS kind, gateways.id AS name, gateways.serves AS number, gateways.seen_at AS seen_at, ";
            " - gateways.seen_at AS silent FROM gateways
             JOIN leases ON leases.name = ?1 || gateways.id AND leases.gateway = gateways.id
             UNION ALL
             SELECT DISTINCT 1, work.owner, 0, 0, 0 FROM (
                 SELECT owner FROM inbox WHERE state IN ('accepted', 'working')
                 UNION ALL SELECT owner FROM deliveries WHERE state IN ('pending', 'sending')
                 UNION ALL SELECT owner FROM sandboxes
                 UNION ALL SELECT owner FROM processes
                 UNION ALL SELECT owner FROM scheduled_jobs
                 UNION ALL SELECT owner FROM approvals WHERE recorded = 0 AND state <> 'pending'
                 UNION ALL SELECT owner FROM browser_messages WHERE state = 'waiting'
             ) AS work
             WHERE NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?1 || work.owner)
             UNION ALL
             SELECT 2, '', id, 0, 0 FROM inbox WHERE state IN ('accepted', 'working') AND owner = ?2
             UNION ALL
             SELECT 3, '', count(*), 0, 0 FROM gateway_signals WHERE gateway = ?2"
        );
        let query = query.bind(OWN_LEASE).bind(self.database.gateway());
        let found = self.database.read("look for work", query, found);
        let mut ahead = WorkAhead::default();
        for found in found.await? {
            match found {
                FoundWork::Gateway(gateway) => ahead.gateways.push(gateway),
                FoundWork::Orphan(name) => ahead.orphans.push(name),
                FoundWork::Open(row) => ahead.open.push(row),
                FoundWork::Signals(count) => ahead.signals |= count > 0,
            }
        }
        ahead.open.sort_unstable();
        Ok(ahead)
    }

    /// These messages, as far as they are open and still this gateway's, in the order they came.
    pub async fn open(&self, rows: &[MessageRow]) -> Result<Vec<OpenMessage>, StoreError> {
        let query = SqlStatement::for_each(
            "SELECT * FROM inbox WHERE id IN (SELECT value FROM json_each('[' || ?1 || ']'))
             AND state IN ('accepted', 'working') AND owner = ?2 ORDER BY id",
            "SELECT * FROM inbox WHERE id = ANY (CAST(string_to_array(?1, ',') AS BIGINT[]))
             AND state IN ('accepted', 'working') AND owner = ?2 ORDER BY id",
        );
        let numbers: Vec<_> = rows.iter().map(|row| row.0.to_string()).collect();
        let query = query.bind(&numbers.join(",")).bind(self.database.gateway());
        let doing = "read messages that others took";
        self.database.read(doing, query, inbox::open).await
    }

    /// Takes over everything that stands under this name, if nobody alive goes by it. One who adopts wins, and on
    /// PostgreSQL waits for what the one before had begun to write.
    ///
    /// `silent_since` is the last sign of life that the caller saw for [`DEAD_AFTER`] by its own clock.
    pub async fn adopt(
        &self,
        name: &str,
        silent_since: Option<LastBeat>,
    ) -> Result<AdoptedWork, StoreError> {
        let over = with_clock!(
            "DELETE FROM leases WHERE name = ?1 || ?2 AND NOT EXISTS
             (SELECT 1 FROM gateways WHERE id = ?2 AND seen_at > ";
            " - ?3 AND seen_at <> ?4)"
        )
        .bind(OWN_LEASE)
        .bind(name)
        .bind(millis(DEAD_AFTER))
        .bind(silent_since.map_or(-1, |beat| beat.0))
        .alone_in(CLAIMS);
        let mut statements = vec![over];
        let passed = |sql: &'static str| {
            let statement = SqlStatement::new(sql).bind(self.database.gateway());
            statement.bind(name).bind(OWN_LEASE)
        };
        // Holders first: whoever accepts a message locks that row, so its message is there or gets its new
        // holder's name.
        statements.extend(ADOPTED.map(passed));
        let gone = SqlStatement::new(
            "DELETE FROM gateways WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?2 || ?1)",
        );
        statements.push(gone.bind(name).bind(OWN_LEASE));
        let doing = "adopt the work of another gateway";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), statements)
            .await?;
        adopted(&written).map_err(StoreError::while_doing(doing))
    }

    /// Takes the intake of an account, if nobody who serves has it.
    pub async fn take_account(
        &self,
        account: &str,
        installation: &str,
        host: &str,
    ) -> Result<bool, StoreError> {
        let take = SqlStatement::new(
            "INSERT INTO leases (name, gateway, epoch, installation, host) VALUES (?1, ?2, 1, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET gateway = excluded.gateway, epoch = leases.epoch + 1,
                 installation = excluded.installation, host = excluded.host
             WHERE leases.gateway IS NULL OR NOT EXISTS
                 (SELECT 1 FROM leases AS held WHERE held.name = ?5 || leases.gateway) RETURNING 1",
        )
        .bind(&format!("account:{account}"))
        .bind(self.database.gateway())
        .bind(installation)
        .bind(host)
        .bind(OWN_LEASE)
        .alone_in(CLAIMS);
        let doing = "take the intake of an account";
        let taken = self
            .database
            .returning(doing, (OnDisk, Fail), take, |_| Ok(()));
        taken.await.map(|taken| taken.is_some())
    }

    /// Whether conversations that nobody has may become this gateway's from now on.
    pub async fn take_on(&self, takes_on: bool) -> Result<(), StoreError> {
        let update = SqlStatement::new("UPDATE gateways SET serves = ? WHERE id = ?")
            .bind(i64::from(takes_on))
            .bind(self.database.gateway());
        let doing = "say whether conversations are taken on";
        self.database
            .change(doing, (OnDisk, Fail), update)
            .await
            .map(drop)
    }

    /// Tells every other gateway that serves.
    pub async fn signal_others(&self, payload: &str) -> Result<(), StoreError> {
        let signal = SqlStatement::new(
            "INSERT INTO gateway_signals (gateway, payload)
             SELECT leases.gateway, ?1 FROM leases
             WHERE leases.name = ?2 || leases.gateway AND leases.gateway <> ?3",
        )
        .bind(payload)
        .bind(OWN_LEASE)
        .bind(self.database.gateway());
        let doing = "tell the other gateways";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), vec![signal, told("")]);
        written.await.map(drop)
    }

    /// What others told this gateway, once, in the order they did.
    pub async fn take_signals(&self) -> Result<Vec<String>, StoreError> {
        let doing = "hear the other gateways";
        let take = SqlStatement::new(
            "DELETE FROM gateway_signals WHERE gateway = ? RETURNING id, payload",
        )
        .bind(self.database.gateway());
        let written = self
            .database
            .write(doing, (OnDisk, Fail), vec![take])
            .await?;
        let rows = written.first().map_or(&[][..], StatementResult::rows);
        let read = |row: &DatabaseRow| Ok((row.get::<i64>("id")?, row.get::<String>("payload")?));
        let signals: Result<Vec<_>, DatabaseError> = rows.iter().map(read).collect();
        let mut signals = signals.map_err(StoreError::while_doing(doing))?;
        signals.sort_unstable();
        Ok(signals.into_iter().map(|(_, payload)| payload).collect())
    }

    /// Who serves a conversation, and at which epoch: it grows with every change of hands.
    pub async fn holder(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<(String, u64)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT gateway, epoch FROM conversation_holders WHERE conversation = ?",
        )
        .bind(conversation.as_str());
        let read = |row: &DatabaseRow| {
            let epoch: i64 = row.get("epoch")?;
            Ok((row.get("gateway")?, epoch.unsigned_abs()))
        };
        let doing = "look who serves a conversation";
        self.database.read_first(doing, query, read).await
    }

    /// Puts everything under the name of the sole gateway: for one that serves alone after several shared the work.
    pub async fn gather(&self) -> Result<(), StoreError> {
        let gathered = |sql: &'static str| SqlStatement::new(sql).bind(NOBODY);
        let mut statements: Vec<_> = GATHERED.map(gathered).into();
        let leases = SqlStatement::new("DELETE FROM leases WHERE name LIKE ? || '%'");
        statements.push(leases.bind(OWN_LEASE));
        let doing = "gather the work of all gateways";
        let written = self.database.write(doing, (OnDisk, Fail), statements);
        written.await.map(drop)
    }

    /// Hears of work from now on.
    pub async fn hints(&self) -> WorkHints {
        WorkHints {
            listener: self.database.listen(WORK).await,
            gateway: self.database.gateway().to_owned(),
        }
    }
}

impl WorkHints {
    /// Returns when there may be something to do; never where that cannot be heard.
    pub async fn next(&mut self) {
        while let Some(listener) = &mut self.listener {
            match listener.told().await {
                Some(whom) if whom.is_empty() || whom == self.gateway => return,
                // A message under nobody's name: whoever looks first adopts it.
                Some(whom) if whom == NOBODY => return,
                Some(_) => {}
                None => self.listener = None,
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Wakes one gateway, or all.
pub(crate) fn told(whom: &'static str) -> SqlStatement {
    SqlStatement::for_each("SELECT ?, ?", "SELECT pg_notify($1, $2)")
        .bind(WORK)
        .bind(whom)
}

/// One takes back everything that it holds, and with it itself: whoever serves beside it adopts that at once.
pub(crate) fn given_back(gateway: &str) -> Vec<SqlStatement> {
    let over = SqlStatement::new("DELETE FROM leases WHERE name = ?1 || ?2");
    let mut statements = vec![over.bind(OWN_LEASE).bind(gateway).alone_in(CLAIMS)];
    let passed = |sql: &'static str| {
        let statement = SqlStatement::new(sql).bind(NOBODY);
        statement.bind(gateway).bind(OWN_LEASE)
    };
    statements.extend(ADOPTED.map(passed));
    // The last one leaves nothing held: somebody who serves alone need not wait until all are dead.
    let last = SqlStatement::new(
        "UPDATE leases SET gateway = NULL WHERE name = ?1 AND gateway = ?2 AND NOT EXISTS
         (SELECT 1 FROM leases AS own WHERE own.name LIKE ?3 || '%')",
    );
    statements.push(last.bind(SERVING).bind(TOGETHER).bind(OWN_LEASE));
    statements.extend([left(gateway), told(""), release_told()]);
    statements
}

/// Each gives what stands under the name `?2` to `?1`, unless somebody holds the lease of that name. The first
/// four are read back.
const ADOPTED: [&str; 10] = [
    "UPDATE conversation_holders SET gateway = ?1, epoch = epoch + 1
     WHERE gateway = ?2 AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2)",
    "UPDATE inbox SET owner = ?1 WHERE owner = ?2 AND state IN ('accepted', 'working')
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2) RETURNING *",
    "UPDATE deliveries SET owner = ?1 WHERE owner = ?2 AND state IN ('pending', 'sending')
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2) RETURNING *",
    "UPDATE sandboxes SET owner = ?1 WHERE owner = ?2
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2) RETURNING *",
    "UPDATE processes SET owner = ?1 WHERE owner = ?2
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2) RETURNING *",
    "UPDATE approvals SET owner = ?1 WHERE owner = ?2 AND (state = 'pending' OR recorded = 0)
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2)",
    "UPDATE browser_messages SET owner = ?1 WHERE owner = ?2 AND state = 'waiting'
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2)",
    "UPDATE scheduled_jobs SET owner = ?1 WHERE owner = ?2
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2)",
    "UPDATE gateway_signals SET gateway = ?1 WHERE gateway = ?2
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?3 || ?2)",
    // Whoever takes an account raises its epoch; `?1` has no say in it.
    "UPDATE leases SET gateway = CASE WHEN ?1 = '' THEN gateway END
     WHERE gateway = ?2 AND name LIKE 'account:%'
     AND NOT EXISTS (SELECT 1 FROM leases AS own WHERE own.name = ?3 || ?2)",
];

/// Each puts everything under the name `?1`.
const GATHERED: [&str; 9] = [
    "UPDATE conversation_holders SET gateway = ?1, epoch = epoch + 1 WHERE gateway <> ?1",
    "UPDATE inbox SET owner = ?1 WHERE owner <> ?1 AND state IN ('accepted', 'working')",
    "UPDATE deliveries SET owner = ?1 WHERE owner <> ?1 AND state IN ('pending', 'sending')",
    "UPDATE sandboxes SET owner = ?1 WHERE owner <> ?1",
    "UPDATE processes SET owner = ?1 WHERE owner <> ?1",
    "UPDATE approvals SET owner = ?1 WHERE owner <> ?1 AND (state = 'pending' OR recorded = 0)",
    "UPDATE browser_messages SET owner = ?1 WHERE owner <> ?1 AND state = 'waiting'",
    "UPDATE scheduled_jobs SET owner = ?1 WHERE owner <> ?1",
    "DELETE FROM gateway_signals WHERE gateway <> ?1",
];

enum FoundWork {
    Gateway(ServingGateway),
    Orphan(String),
    Open(MessageRow),
    Signals(i64),
}

fn found(row: &DatabaseRow) -> Result<FoundWork, DatabaseError> {
    let number: i64 = row.get("number")?;
    Ok(match row.get::<i64>("kind")? {
        GATEWAY => FoundWork::Gateway(ServingGateway {
            id: row.get("name")?,
            takes_on: number == 1,
            silent_for: silence(row.get("silent")?),
            beat: LastBeat(row.get("seen_at")?),
        }),
        ORPHAN => FoundWork::Orphan(row.get("name")?),
        OPEN => FoundWork::Open(MessageRow(number)),
        SIGNAL => FoundWork::Signals(number),
        _ => return Err(DatabaseError::no_row()),
    })
}

/// What the statements of an adoption wrote, behind the one that ended the lease.
fn adopted(written: &[StatementResult]) -> Result<AdoptedWork, DatabaseError> {
    fn all<T>(
        written: &[StatementResult],
        at: usize,
        read: impl Fn(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<Vec<T>, DatabaseError> {
        let rows = written.get(at).map_or(&[][..], StatementResult::rows);
        rows.iter().map(read).collect()
    }
    let mut work = AdoptedWork {
        messages: all(written, 2, inbox::open)?,
        deliveries: all(written, 3, deliveries::due)?,
        sandboxes: all(written, 4, ledger::entry)?,
        processes: all(written, 5, processes::process)?,
        others: written
            .iter()
            .enumerate()
            .filter(|(at, _)| matches!(at, 1 | 6..=9))
            .map(|(_, result)| result.affected())
            .sum(),
    };
    // What an update gives back is in no order.
    work.messages.sort_by_key(|message| message.row);
    work.deliveries.sort_by_key(|delivery| delivery.row);
    work.processes.sort_by_key(|process| process.begun_at);
    Ok(work)
}

#[cfg(test)]
#[path = "shared_work_tests.rs"]
mod tests;
