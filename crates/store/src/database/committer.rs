//! The task that commits what callers hand in, as many writes at once as wait.
//!
//! It has two connections. One waits for the disk in its commits (`synchronous = FULL`), the other does
//! not (`NORMAL`); the log they write to is the same. While the disk is busy with one commit, the next
//! writes gather and become one transaction with one sync.
//!
//! A connection that failed for another reason than a statement's own is closed and opened again: only
//! then it is certain that no transaction is left open in it, in which a later statement would seem to
//! be committed and is not.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use hermetic_types::{HealthReport, SharedClock};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Either, Executor, Row as _, SqliteConnection};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::failure::{WriteFailure, in_words, is_failed_sync};
use super::write::{StatementResult, StoreWriter, WithoutRoom, WriteDurability, WriteJob};
use super::{DatabaseRow, SqlStatement};

/// More than this many writes are never in one transaction.
const MOST_AT_ONCE: usize = 256;

/// How often a store in trouble is tried.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// What nobody waits for is on the disk after this.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Committer {
    options: SqliteConnectOptions,
    log: PathBuf,
    on_disk: Option<SqliteConnection>,
    soon: Option<SqliteConnection>,
    jobs: mpsc::UnboundedReceiver<WriteJob>,
    /// Writes without room.
    waiting: Vec<WriteJob>,
    may_wait: Arc<AtomicBool>,
    health: HealthReport,
    /// Counts the commits.
    changes: watch::Sender<u64>,
    /// Tells since when the store is in trouble.
    clock: SharedClock,
    in_trouble: Option<Instant>,
    /// Since when something is committed and not synced.
    unsynced: Option<Instant>,
    /// A sync has failed. What the kernel could not write then it does not try again and does not
    /// report again, so the log may have a hole.
    log_is_doubtful: bool,
}

/// What each statement of a job came to, or why the job failed by its own fault.
type Outcome = Result<Vec<StatementResult>, sqlx::Error>;

impl Committer {
    /// `first` waits for the disk. The queue has no bound of its own: each caller waits for its write.
    pub(super) fn start(
        options: SqliteConnectOptions,
        first: SqliteConnection,
        clock: SharedClock,
    ) -> StoreWriter {
        let (hand_in, jobs) = mpsc::unbounded_channel();
        let writer = StoreWriter {
            jobs: hand_in,
            waits: Arc::default(),
            health: HealthReport::default(),
            changes: watch::Sender::new(0),
        };
        let mut log = options.get_filename().as_os_str().to_owned();
        log.push("-wal");
        let committer = Self {
            options,
            log: log.into(),
            on_disk: Some(first),
            soon: None,
            jobs,
            waiting: Vec::new(),
            may_wait: Arc::clone(&writer.waits),
            health: writer.health.clone(),
            changes: writer.changes.clone(),
            clock,
            in_trouble: None,
            unsynced: None,
            log_is_doubtful: false,
        };
        tokio::spawn(committer.run());
        writer
    }

    /// Until nobody is left who could write.
    async fn run(mut self) {
        loop {
            let far = Instant::now() + Duration::from_secs(3600);
            let try_again = self.in_trouble.unwrap_or(far);
            let settle = self.unsynced.map_or(far, |since| since + SETTLE);
            tokio::select! {
                // Trouble first: what waits for room was asked for before anything that comes now.
                // Then the sync, which a constant flow of writes would otherwise put off for ever.
                biased;
                () = sleep_until(try_again), if self.in_trouble.is_some() => self.try_again().await,
                () = sleep_until(settle), if self.unsynced.is_some() => self.settle().await,
                job = self.jobs.recv() => match job {
                    Some(job) => {
                        let batch = self.gather(job);
                        self.commit(batch).await;
                    }
                    None => break,
                },
            }
        }
        self.settle().await;
        for connection in [self.on_disk.take(), self.soon.take()]
            .into_iter()
            .flatten()
        {
            let _ = connection.close().await;
        }
    }

    fn gather(&mut self, first: WriteJob) -> Vec<WriteJob> {
        let mut batch = vec![first];
        // Only what is there already: to wait for more would make every write slower for the sake
        // of few.
        while batch.len() < MOST_AT_ONCE
            && let Ok(job) = self.jobs.try_recv()
        {
            batch.push(job);
        }
        batch
    }

    /// All in one transaction; should that fail, each on its own, so that one which asks for too much
    /// takes no other with it.
    async fn commit(&mut self, batch: Vec<WriteJob>) {
        if batch.len() > 1 {
            match self.attempt(&batch).await {
                Ok(outcomes) => return self.answer(batch, outcomes),
                Err(error)
                    if matches!(
                        WriteFailure::of(&error),
                        WriteFailure::Full | WriteFailure::Disk
                    ) => {}
                Err(error) => {
                    // Whatever it is, it is the same for all of them, and may have taken long to find out.
                    for job in batch {
                        let same = sqlx::Error::Protocol(in_words(&error));
                        self.fail(job, same);
                    }
                    return;
                }
            }
        }
        for job in batch {
            match self.attempt(std::slice::from_ref(&job)).await {
                Ok(outcomes) => self.answer(vec![job], outcomes),
                Err(error) => self.fail(job, error),
            }
        }
    }

    /// Commits these jobs, or changes nothing.
    async fn attempt(&mut self, jobs: &[WriteJob]) -> Result<Vec<Outcome>, sqlx::Error> {
        let durability = if jobs
            .iter()
            .any(|job| job.durability == WriteDurability::OnDisk)
        {
            WriteDurability::OnDisk
        } else {
            WriteDurability::Soon
        };
        let mut connection = self.connection(durability).await?;
        let committed = match jobs {
            // One statement is a transaction, and its end is the commit's.
            [job] if job.statements.len() == 1 => {
                let written = run_all(&mut connection, &job.statements).await;
                written
                    .map_or_else(by_its_own_fault, |written| Ok(Ok(written)))
                    .map(|outcome| vec![outcome])
            }
            [job] => {
                let outcome = all_or_nothing(&mut connection, &job.statements, &TRANSACTION).await;
                outcome.map(|outcome| vec![outcome])
            }
            _ => together(&mut connection, jobs).await,
        };
        match &committed {
            Ok(outcomes) => match durability {
                WriteDurability::OnDisk => {
                    self.on_disk = Some(connection);
                    // What changed nothing was not synced, nor was anything before it.
                    let mut written = outcomes.iter().flatten().flatten();
                    if written.any(|written| written.affected > 0) {
                        self.unsynced = None;
                    }
                }
                WriteDurability::Soon => {
                    self.soon = Some(connection);
                    self.unsynced.get_or_insert_with(Instant::now);
                }
            },
            Err(error) => {
                self.log_is_doubtful |= is_failed_sync(error);
                let _ = connection.close().await;
            }
        }
        committed
    }

    async fn connection(
        &mut self,
        durability: WriteDurability,
    ) -> Result<SqliteConnection, sqlx::Error> {
        let (kept, synchronous) = match durability {
            WriteDurability::OnDisk => (self.on_disk.take(), SqliteSynchronous::Full),
            WriteDurability::Soon => (self.soon.take(), SqliteSynchronous::Normal),
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let options = self.options.clone();
                options.synchronous(synchronous).connect().await?
            }
        };
        if self.log_is_doubtful {
            // What the log says is still readable here; in the file itself it is safe without the log.
            let emptied = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
                .fetch_all(&mut connection)
                .await?;
            if emptied
                .first()
                .is_none_or(|row| !matches!(row.try_get(0), Ok(0_i64)))
            {
                return Err(sqlx::Error::Protocol(
                    "the log could not be emptied after a failed sync".to_owned(),
                ));
            }
            self.log_is_doubtful = false;
        }
        Ok(connection)
    }

    fn answer(&mut self, jobs: Vec<WriteJob>, outcomes: Vec<Outcome>) {
        self.changes.send_modify(|commits| *commits += 1);
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            // A caller who went away does not undo what was committed.
            let _ = job.answer.send(outcome);
        }
        if self.in_trouble.is_some() {
            // There is room again, maybe only for a little: the next try tells.
            self.in_trouble = Some(Instant::now());
        }
    }

    fn fail(&mut self, job: WriteJob, error: sqlx::Error) {
        let why = in_words(&error);
        if self.health.degraded(&why, self.clock.now()) {
            tracing::error!(why, "the store cannot be written");
        }
        self.in_trouble = Some(Instant::now() + TRY_AGAIN);
        // Kept with its caller, who goes on waiting. It was done outside already, so to fail would
        // only mean to forget it.
        if job.without_room == WithoutRoom::Wait && self.may_wait.load(Ordering::SeqCst) {
            self.waiting.push(job);
        } else {
            let _ = job.answer.send(Err(error));
        }
    }

    /// Whether what did not go before goes now. With nothing left to write, something that changes
    /// nothing: nobody else might write for hours, and the store would be called broken all the time.
    async fn try_again(&mut self) {
        // Before the try, which sets it again if it fails.
        self.in_trouble = None;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            let (job, _) = probe();
            self.commit(vec![job]).await;
        } else {
            self.commit(waiting).await;
        }
        if self.in_trouble.is_none() && self.health.recovered() {
            tracing::info!("the store can be written again");
        }
    }

    /// Brings to the disk what was committed without waiting for it. Any descriptor of the log will do;
    /// SQLite holds no lock on that file.
    async fn settle(&mut self) {
        // Taken before the sync: what is committed meanwhile marks it anew, and is synced the next
        // time.
        if self.unsynced.take().is_none() {
            return;
        }
        // Not by a commit on the other connection, which would sync nothing where it changes
        // nothing.
        let log = self.log.clone();
        let synced = tokio::task::spawn_blocking(move || match File::open(log) {
            Ok(log) => log.sync_data(),
            // It was folded into the file, which is synced first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        });
        if let Ok(Err(error)) = synced.await {
            self.log_is_doubtful = true;
            self.in_trouble = Some(Instant::now());
            let why = format!("the disk answers with an error ({error})");
            if self.health.degraded(&why, self.clock.now()) {
                tracing::error!(why, "the store cannot be written");
            }
        }
    }
}

/// What makes several statements one.
struct StatementBracket {
    opening: &'static str,
    closing: &'static str,
    undoing: &'static [&'static str],
}

/// The right to write is taken at once: a transaction that begins by reading and wants to write later can be
/// refused in its middle, when another process wrote in between.
const TRANSACTION: StatementBracket = StatementBracket {
    opening: "BEGIN IMMEDIATE",
    closing: "COMMIT",
    undoing: &["ROLLBACK"],
};

/// A part of a transaction that can fail without the others.
const PART: StatementBracket = StatementBracket {
    opening: "SAVEPOINT one_write",
    closing: "RELEASE one_write",
    undoing: &["ROLLBACK TO one_write", "RELEASE one_write"],
};

async fn together(
    connection: &mut SqliteConnection,
    jobs: &[WriteJob],
) -> Result<Vec<Outcome>, sqlx::Error> {
    run(connection, &SqlStatement::new(TRANSACTION.opening)).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        // A single statement that fails by its own fault has changed nothing.
        let outcome = match job.statements.len() {
            1 => run_all(connection, &job.statements)
                .await
                .map_or_else(by_its_own_fault, |written| Ok(Ok(written)))?,
            // All of a job or nothing of it, without the others in the same transaction: half of one
            // that failed would be committed with them.
            _ => all_or_nothing(connection, &job.statements, &PART).await?,
        };
        outcomes.push(outcome);
    }
    run(connection, &SqlStatement::new(TRANSACTION.closing)).await?;
    Ok(outcomes)
}

/// All of these statements or, where one fails by its own fault, none.
async fn all_or_nothing(
    connection: &mut SqliteConnection,
    statements: &[SqlStatement],
    bracket: &StatementBracket,
) -> Result<Outcome, sqlx::Error> {
    let script = SqlStatement::sqlite_script(bracket.opening, statements, bracket.closing);
    let written = match script {
        // Handed to SQLite's thread as one text: each way there and back wakes two threads, which takes longer
        // than a statement.
        Some(script) => run_script(connection, script, statements.len()).await,
        None => run_bracketed(connection, statements, bracket).await,
    };
    let outcome = written.map_or_else(by_its_own_fault, |written| Ok(Ok(written)))?;
    if outcome.is_err() {
        for undo in bracket.undoing {
            run(connection, &SqlStatement::new(undo)).await?;
        }
    }
    Ok(outcome)
}

async fn run_bracketed(
    connection: &mut SqliteConnection,
    statements: &[SqlStatement],
    bracket: &StatementBracket,
) -> Result<Vec<StatementResult>, sqlx::Error> {
    run(connection, &SqlStatement::new(bracket.opening)).await?;
    let written = run_all(connection, statements).await?;
    run(connection, &SqlStatement::new(bracket.closing)).await?;
    Ok(written)
}

/// So many statements between two others; what each of them came to.
async fn run_script(
    connection: &mut SqliteConnection,
    script: Query<'static, Sqlite, SqliteArguments>,
    count: usize,
) -> Result<Vec<StatementResult>, sqlx::Error> {
    let mut steps = connection.fetch_many(script);
    let mut written = Vec::with_capacity(count + 2);
    let mut rows = Vec::new();
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => written.push(StatementResult {
                rows: std::mem::take(&mut rows),
                affected: done.rows_affected(),
            }),
            Either::Right(row) => rows.push(DatabaseRow::from(row)),
        }
    }
    if written.len() != count + 2 {
        return Err(sqlx::Error::Protocol(
            "a transaction did not come to its end".to_owned(),
        ));
    }
    // Without what opens and what ends it, of which SQLite tells the count of the statement before.
    written.pop();
    written.remove(0);
    Ok(written)
}

/// A failure that is the statement's own is an outcome; any other ends the transaction.
fn by_its_own_fault(error: sqlx::Error) -> Result<Outcome, sqlx::Error> {
    match WriteFailure::of(&error) {
        WriteFailure::Statement => Ok(Err(error)),
        WriteFailure::Full | WriteFailure::Disk | WriteFailure::Store => Err(error),
    }
}

async fn run_all(
    connection: &mut SqliteConnection,
    statements: &[SqlStatement],
) -> Result<Vec<StatementResult>, sqlx::Error> {
    let mut written = Vec::with_capacity(statements.len());
    for statement in statements {
        written.push(run(connection, statement).await?);
    }
    Ok(written)
}

/// To its very end: the last step is the one that commits, and only it says whether that worked.
async fn run(
    connection: &mut SqliteConnection,
    statement: &SqlStatement,
) -> Result<StatementResult, sqlx::Error> {
    let mut steps = connection.fetch_many(statement.sqlite_query());
    let mut written = StatementResult {
        rows: Vec::new(),
        affected: 0,
    };
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => written.affected += done.rows_affected(),
            Either::Right(row) => written.rows.push(DatabaseRow::from(row)),
        }
    }
    Ok(written)
}

pub(super) fn probe() -> (WriteJob, tokio::sync::oneshot::Receiver<Outcome>) {
    let (answer, answered) = tokio::sync::oneshot::channel();
    let statement = SqlStatement::new(
        "INSERT INTO documents (name, version, body) VALUES ('store:probe', 1, '')
         ON CONFLICT (name) DO UPDATE SET version = documents.version + 1",
    );
    let job = WriteJob {
        statements: vec![statement],
        durability: WriteDurability::OnDisk,
        without_room: WithoutRoom::Fail,
        answer,
    };
    (job, answered)
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;
    use crate::Store;
    use crate::database::Database;

    const TERMS: (WriteDurability, WithoutRoom) = (WriteDurability::Soon, WithoutRoom::Fail);

    fn put(name: &str) -> SqlStatement {
        SqlStatement::new(
            "INSERT INTO documents (name, version, body) VALUES (?, 1, '') RETURNING name",
        )
        .bind(name)
    }

    async fn names(database: &Database) -> Vec<String> {
        let all = SqlStatement::new("SELECT name FROM documents ORDER BY name");
        let named = |row: &DatabaseRow| row.get("name");
        database.read("look", all, named).await.unwrap()
    }

    async fn opened(folder: &tempfile::TempDir) -> Store {
        let path = folder.path().join("state.db");
        Store::open(&path, SystemClock::shared()).await.unwrap()
    }

    #[tokio::test]
    async fn each_statement_of_a_write_tells_its_own_rows() {
        let folder = tempfile::tempdir().unwrap();
        let store = opened(&folder).await;
        let renamed = SqlStatement::new("UPDATE documents SET name = ? WHERE name LIKE ?")
            .bind("c")
            .bind("b%");
        let three = vec![put("a"), put("b"), renamed];
        let written = store.database.write("put", TERMS, three).await.unwrap();
        let told: Vec<(u64, Option<String>)> = written
            .iter()
            .map(|one| {
                (
                    one.affected(),
                    one.first_row().map(|row| row.get(0).unwrap()),
                )
            })
            .collect();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(told, [(1, name("a")), (1, name("b")), (1, None)]);
        assert_eq!(names(&store.database).await, ["a", "c"]);
    }

    #[tokio::test]
    async fn a_write_that_fails_in_its_middle_changes_nothing_and_takes_no_other_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = opened(&folder).await;
        let numbered = SqlStatement::new("UPDATE documents SET version = ?1 WHERE name = ?2")
            .bind(7_i64)
            .bind("a");
        for with_numbers in [false, true] {
            let mut twice = vec![put("a"), put("a"), put("b")];
            if with_numbers {
                twice.push(numbered.clone());
            }
            assert!(
                store
                    .database
                    .write("put", TERMS, twice.clone())
                    .await
                    .is_err()
            );
            assert_eq!(names(&store.database).await, [""; 0]);
            // Several at once are one transaction.
            let (failed, one, two) = tokio::join!(
                store.database.write("put", TERMS, twice),
                store.database.write("put", TERMS, vec![put("c"), put("d")]),
                store.database.write("put", TERMS, vec![put("e")]),
            );
            assert!(failed.is_err() && one.is_ok() && two.is_ok());
            assert_eq!(names(&store.database).await, ["c", "d", "e"]);
            let all = SqlStatement::new("DELETE FROM documents");
            store.database.change("clear", TERMS, all).await.unwrap();
        }
        let both = vec![put("a"), numbered];
        store.database.write("put", TERMS, both).await.unwrap();
        assert_eq!(names(&store.database).await, ["a"]);
    }
}
