//! The work of gateways that serve side by side, and how it passes from one to the next.
//!
//! Each process owns the rows of its work, under its own name, and holds one lease of its own. A conversation has
//! one holder, in whose name its messages are written, whichever gateway hears them. What nobody alive holds is
//! adopted: a process's work when its lease is over, and what stands under the name of the sole gateway, where an
//! orderly stop, an earlier version or a command puts it. Of what is adopted each gateway takes the conversations
//! that fall to it by their names, so that it is spread as new ones are. A conversation without work is left as it
//! is: whoever hears its next message picks a holder anew.

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
pub(crate) const NOBODY: &str = "gateway";

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
    /// Accounts to which somebody who serves listens.
    pub heard_accounts: Vec<String>,
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

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkHint {
    /// A message was written in this gateway's name.
    Own,
    /// Something that concerns everybody.
    All,
}

/// What a row of a look is about.
const GATEWAY: i64 = 0;
const ORPHAN: i64 = 1;
const OPEN: i64 = 2;
const SIGNAL: i64 = 3;
const ACCOUNT: i64 = 4;

/// An account's lease is called so, with its name behind.
const ACCOUNT_LEASE: &str = "account:";

/// What a gateway has to do for itself alone, `?1` being its name.
macro_rules! own_work {
    () => {
        "SELECT 2 AS kind, '' AS name, id AS number, 0 AS seen_at, 0 AS silent FROM inbox
         WHERE state IN ('accepted', 'working') AND owner = ?1
         UNION ALL
         SELECT 3, '', count(*), 0, 0 FROM gateway_signals WHERE gateway = ?1"
    };
}

/// Which of those who take conversations on this one falls to, `?3` being [`OWN_LEASE`]: by its own name, so that
/// they are spread and nobody has to count. Nothing where nobody takes any on. SQLite has no hash, and one gateway.
macro_rules! sqlite_next_holder {
    () => {
        "(SELECT leases.gateway FROM leases JOIN gateways ON gateways.id = leases.gateway
          WHERE leases.name = ?3 || gateways.id AND gateways.serves = 1
          ORDER BY gateways.id LIMIT 1)"
    };
}
macro_rules! postgres_next_holder {
    ($conversation:literal) => {
        concat!(
            "(SELECT leases.gateway FROM leases JOIN gateways ON gateways.id = leases.gateway
              WHERE leases.name = ?3 || gateways.id AND gateways.serves = 1 AND gateways.seen_at > ",
            postgres_now!(),
            " - 9000 ORDER BY md5(gateways.id || ",
            $conversation,
            ") LIMIT 1)"
        )
    };
}
pub(crate) use {postgres_next_holder, sqlite_next_holder};

/// Whether anything of the conversation `?1` has no end yet, whosever it is.
macro_rules! is_at_work {
    () => {
        "(EXISTS (SELECT 1 FROM inbox WHERE conversation = ?1 AND state IN ('accepted', 'working'))
          OR EXISTS (SELECT 1 FROM sandboxes WHERE conversation = ?1)
          OR EXISTS (SELECT 1 FROM processes WHERE conversation = ?1)
          OR EXISTS (SELECT 1 FROM approvals WHERE conversation = ?1 AND (state = 'pending' OR recorded = 0))
          OR EXISTS (SELECT 1 FROM deliveries JOIN inbox ON inbox.id = deliveries.message
                     WHERE inbox.conversation = ?1 AND deliveries.state IN ('pending', 'sending')))"
    };
}
pub(crate) use is_at_work;

impl SharedWork {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// One question for everything: it is asked again and again, by every gateway.
    pub async fn look(&self) -> Result<WorkAhead, StoreError> {
        let query = with_clock!(
            "SELECT 0 AS kind, gateways.id AS name, gateways.serves AS number, gateways.seen_at AS seen_at, ";
            " - gateways.seen_at AS silent FROM gateways
             JOIN leases ON leases.name = ?2 || gateways.id AND leases.gateway = gateways.id
             UNION ALL
             SELECT DISTINCT 1, work.owner, 0, 0, 0 FROM (
                 SELECT owner FROM inbox WHERE state IN ('accepted', 'working')
                 UNION ALL SELECT owner FROM deliveries WHERE state IN ('pending', 'sending')
                 UNION ALL SELECT owner FROM sandboxes
                 UNION ALL SELECT owner FROM processes
                 UNION ALL SELECT owner FROM scheduled_jobs
                 UNION ALL SELECT owner FROM approvals WHERE state = 'pending' OR recorded = 0
                 UNION ALL SELECT owner FROM browser_messages WHERE state = 'waiting'
             ) AS work
             WHERE NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?2 || work.owner)
             UNION ALL
             SELECT 4, leases.name, 0, 0, 0 FROM leases
             JOIN leases AS own ON own.name = ?2 || leases.gateway WHERE leases.name LIKE ?3 || '%'
             UNION ALL ",
            own_work!()
        );
        let query = query.bind(self.database.gateway());
        self.found(query.bind(OWN_LEASE).bind(ACCOUNT_LEASE)).await
    }

    /// The same as far as it concerns this gateway alone: its messages, and what it was told.
    pub async fn look_for_own(&self) -> Result<WorkAhead, StoreError> {
        let query = SqlStatement::new(own_work!());
        self.found(query.bind(self.database.gateway())).await
    }

    async fn found(&self, query: SqlStatement) -> Result<WorkAhead, StoreError> {
        let found = self.database.read("look for work", query, found);
        let mut ahead = WorkAhead::default();
        for found in found.await? {
            match found {
                FoundWork::Gateway(gateway) => ahead.gateways.push(gateway),
                FoundWork::Orphan(name) => ahead.orphans.push(name),
                FoundWork::Open(row) => ahead.open.push(row),
                FoundWork::Signals(count) => ahead.signals |= count > 0,
                FoundWork::HeardAccount(name) => ahead.heard_accounts.push(name),
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

    /// Takes over what stands under this name and falls to this gateway, if nobody alive goes by it: a conversation
    /// with all that it has, and what is no conversation's. Of what falls to nobody else one who adopts wins. On
    /// PostgreSQL it waits for what the one before had begun to write.
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
        let passed = |statement: SqlStatement| {
            let statement = statement.bind(self.database.gateway());
            statement.bind(name).bind(OWN_LEASE)
        };
        // Holders first: whoever accepts a message locks that row, so its message is there or gets its new
        // holder's name. Everything else goes by them.
        let adopted_rows =
            ADOPTED.map(|(sqlite, postgres)| SqlStatement::for_each(sqlite, postgres));
        statements.extend(adopted_rows.map(passed));
        // Whoever sees first that one is gone wakes the others, to whom its other conversations fall.
        let gone = SqlStatement::for_each(
            "DELETE FROM gateways WHERE id = ?1 AND ?3 <> ''
             AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?2 || ?1)",
            "WITH gone AS (DELETE FROM gateways WHERE id = ?1
                 AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = ?2 || ?1) RETURNING 1)
             SELECT pg_notify(?3, '') FROM gone",
        );
        statements.push(gone.bind(name).bind(OWN_LEASE).bind(WORK));
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
        .bind(&format!("{ACCOUNT_LEASE}{account}"))
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

    /// No conversation that nobody has becomes this gateway's any more, and whoever looks first listens to its
    /// accounts: it does not.
    pub async fn begin_to_leave(&self) -> Result<(), StoreError> {
        let own = self.database.gateway();
        let leaves = SqlStatement::new("UPDATE gateways SET serves = 0 WHERE id = ?").bind(own);
        let accounts = SqlStatement::new(
            "UPDATE leases SET gateway = NULL WHERE gateway = ?1 AND name LIKE ?2 || '%'",
        );
        let statements = vec![leaves, accounts.bind(own).bind(ACCOUNT_LEASE), told("")];
        let doing = "begin to leave those who serve";
        let written = self.database.write(doing, (OnDisk, Fail), statements);
        written.await.map(drop)
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
    pub async fn next(&mut self) -> WorkHint {
        while let Some(listener) = &mut self.listener {
            match listener.told().await {
                Some(whom) if whom == self.gateway => return WorkHint::Own,
                // The latter is a message under nobody's name: whoever it falls to adopts it.
                Some(whom) if whom.is_empty() || whom == NOBODY => return WorkHint::All,
                Some(_) => {}
                None => self.listener = None,
            }
        }
        std::future::pending().await
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
    statements.extend(GIVEN_BACK.map(passed));
    // The last one leaves nothing held: somebody who serves alone need not wait until all are dead.
    let last = SqlStatement::new(
        "UPDATE leases SET gateway = NULL WHERE name = ?1 AND gateway = ?2 AND NOT EXISTS
         (SELECT 1 FROM leases AS own WHERE own.name LIKE ?3 || '%')",
    );
    statements.push(last.bind(SERVING).bind(TOGETHER).bind(OWN_LEASE));
    statements.extend([left(gateway), told(""), release_told()]);
    statements
}

/// An update that gives what stands under the name `?2` to `?1`, unless somebody holds the lease of that name.
macro_rules! passed_on {
    ($update:literal $(, $more:expr)*) => {
        concat!(
            $update,
            " AND NOT EXISTS (SELECT 1 FROM leases AS own WHERE own.name = ?3 || ?2)"
            $(, $more)*
        )
    };
}

/// Everything of one that is given back.
const GIVEN_BACK: [&str; 10] = [
    passed_on!(
        "UPDATE conversation_holders SET gateway = ?1, epoch = epoch + 1 WHERE gateway = ?2"
    ),
    passed_on!("UPDATE inbox SET owner = ?1 WHERE owner = ?2 AND state IN ('accepted', 'working')"),
    passed_on!(
        "UPDATE deliveries SET owner = ?1 WHERE owner = ?2 AND state IN ('pending', 'sending')"
    ),
    passed_on!("UPDATE sandboxes SET owner = ?1 WHERE owner = ?2"),
    passed_on!("UPDATE processes SET owner = ?1 WHERE owner = ?2"),
    PASSED_QUESTIONS,
    PASSED_BROWSER_MESSAGES,
    PASSED_JOBS,
    PASSED_SIGNALS,
    PASSED_ACCOUNTS,
];

const PASSED_QUESTIONS: &str = passed_on!(
    "UPDATE approvals SET owner = ?1 WHERE owner = ?2 AND (state = 'pending' OR recorded = 0)"
);
const PASSED_BROWSER_MESSAGES: &str =
    passed_on!("UPDATE browser_messages SET owner = ?1 WHERE owner = ?2 AND state = 'waiting'");
const PASSED_JOBS: &str = passed_on!("UPDATE scheduled_jobs SET owner = ?1 WHERE owner = ?2");
const PASSED_SIGNALS: &str =
    passed_on!("UPDATE gateway_signals SET gateway = ?1 WHERE gateway = ?2");
/// Whoever takes an account raises its epoch; `?1` has no say in it.
const PASSED_ACCOUNTS: &str = passed_on!(
    "UPDATE leases SET gateway = CASE WHEN ?1 = '' THEN gateway END
     WHERE gateway = ?2 AND name LIKE 'account:%'"
);

/// Whether people talk there: neither a job's, nor what works beside a conversation, nor one that waits in the
/// pool. Nobody looks for a holder of those.
macro_rules! sqlite_is_peoples {
    ($key:literal) => {
        concat!(
            "(",
            $key,
            " NOT LIKE 'pool:%' AND ",
            $key,
            " NOT LIKE '%:cron:%' AND ",
            $key,
            " NOT LIKE '%:cronwork:%' AND ",
            $key,
            " NOT LIKE '%:work:%')"
        )
    };
}
macro_rules! postgres_is_peoples {
    ($key:literal) => {
        concat!(
            "(split_part(",
            $key,
            ", ':', 1) <> 'pool' AND split_part(",
            $key,
            ", ':', 4) NOT IN ('cron', 'cronwork', 'work'))"
        )
    };
}

/// The conversations of people in which something has no end that stands under `?2`, and that fall to `?1`, get it
/// as their holder. One that has a living holder keeps it: what it left under another name is its own.
macro_rules! named_holders {
    ($is_peoples:expr, $next_holder:expr) => {
        concat!(
            "INSERT INTO conversation_holders (conversation, gateway, epoch)
             SELECT work.conversation, ?1, 1 FROM (
                 SELECT conversation FROM inbox WHERE owner = ?2 AND state IN ('accepted', 'working')
                 UNION SELECT conversation FROM sandboxes WHERE owner = ?2
                 UNION SELECT conversation FROM processes WHERE owner = ?2
                 UNION SELECT conversation FROM approvals
                     WHERE owner = ?2 AND (state = 'pending' OR recorded = 0)
                 UNION SELECT inbox.conversation FROM deliveries JOIN inbox ON inbox.id = deliveries.message
                     WHERE deliveries.owner = ?2 AND deliveries.state IN ('pending', 'sending')
             ) AS work
             WHERE NOT EXISTS (SELECT 1 FROM leases AS own WHERE own.name = ?3 || ?2)
               AND ",
            $is_peoples,
            " AND ?1 = coalesce(",
            $next_holder,
            ", ?1)
             ON CONFLICT (conversation) DO UPDATE
             SET gateway = excluded.gateway, epoch = conversation_holders.epoch + 1
             WHERE NOT EXISTS
                 (SELECT 1 FROM leases AS own WHERE own.name = ?3 || conversation_holders.gateway)"
        )
    };
}

/// For both databases: what is no conversation of people goes to whoever is first, and the rest with its holder.
macro_rules! adopted_rows {
    ($update:literal, $key:literal, $returning:literal) => {
        (
            adopted_rows!(@ $update, $key, sqlite_is_peoples!($key), $returning),
            adopted_rows!(@ $update, $key, postgres_is_peoples!($key), $returning),
        )
    };
    (@ $update:literal, $key:literal, $is_peoples:expr, $returning:literal) => {
        passed_on!(
            $update,
            " AND (NOT ",
            $is_peoples,
            " OR EXISTS (SELECT 1 FROM conversation_holders AS held
                         WHERE held.gateway = ?1 AND held.conversation = ",
            $key,
            "))",
            $returning
        )
    };
}

/// The same for replies, of which those without a message are nobody's.
macro_rules! adopted_replies {
    ($is_peoples:expr) => {
        passed_on!(
            "UPDATE deliveries SET owner = ?1 WHERE owner = ?2 AND state IN ('pending', 'sending')",
            " AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.id = deliveries.message AND ",
            $is_peoples,
            " AND NOT EXISTS (SELECT 1 FROM conversation_holders AS held
                              WHERE held.gateway = ?1 AND held.conversation = inbox.conversation))
             RETURNING *"
        )
    };
}

/// Each gives what stands under the name `?2` and falls to `?1` to it, in the words of SQLite and of PostgreSQL.
/// The four behind the first are read back.
const ADOPTED: [(&str, &str); 10] = [
    (
        named_holders!(
            sqlite_is_peoples!("work.conversation"),
            sqlite_next_holder!()
        ),
        named_holders!(
            postgres_is_peoples!("work.conversation"),
            postgres_next_holder!("work.conversation")
        ),
    ),
    adopted_rows!(
        "UPDATE inbox SET owner = ?1 WHERE owner = ?2 AND state IN ('accepted', 'working')",
        "inbox.conversation",
        " RETURNING *"
    ),
    (
        adopted_replies!(sqlite_is_peoples!("inbox.conversation")),
        adopted_replies!(postgres_is_peoples!("inbox.conversation")),
    ),
    adopted_rows!(
        "UPDATE sandboxes SET owner = ?1 WHERE owner = ?2",
        "sandboxes.conversation",
        " RETURNING *"
    ),
    adopted_rows!(
        "UPDATE processes SET owner = ?1 WHERE owner = ?2",
        "processes.conversation",
        " RETURNING *"
    ),
    adopted_rows!(
        "UPDATE approvals SET owner = ?1 WHERE owner = ?2 AND (state = 'pending' OR recorded = 0)",
        "approvals.conversation",
        ""
    ),
    (PASSED_BROWSER_MESSAGES, PASSED_BROWSER_MESSAGES),
    (PASSED_JOBS, PASSED_JOBS),
    (PASSED_SIGNALS, PASSED_SIGNALS),
    (PASSED_ACCOUNTS, PASSED_ACCOUNTS),
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
    HeardAccount(String),
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
        ACCOUNT => {
            let name: String = row.get("name")?;
            let account = name.strip_prefix(ACCOUNT_LEASE).unwrap_or_default();
            FoundWork::HeardAccount(account.to_owned())
        }
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
