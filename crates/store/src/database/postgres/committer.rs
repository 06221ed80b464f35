//! The task that sees every write through.
//!
//! Writes run next to each other, each in a transaction and on a connection of its own. One that cannot be
//! written waits here if it may, and one whose commit nobody answered waits until it is known what became of
//! it. A caller that goes away does not stop a write half-way.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermetic_types::{HealthReport, SharedClock};
use sqlx::postgres::PgPool;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::attempt::{CommitAttempt, Doubt, attempt, settle};
use super::failure::{in_words, named};
use super::opening::WRITERS;
use crate::database::SqlStatement;
use crate::database::committer::probe;
use crate::database::write::{StatementResult, StoreWriter, WithoutRoom, WriteJob};

/// How often a database in trouble is tried.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// For so long a write that may not wait is looked after, once nobody knows whether it is there.
const MOST_DOUBT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct PostgresCommitter {
    pool: PgPool,
    has_timeline: bool,
    jobs: mpsc::UnboundedReceiver<WriteJob>,
    under_way: JoinSet<(PendingWrite, CommitAttempt)>,
    /// To be tried now, before anything new.
    ready: VecDeque<PendingWrite>,
    /// To be tried when the database is tried again.
    waiting: Vec<PendingWrite>,
    /// Writes whose order counts, behind the one that is not over yet.
    lines: HashMap<String, VecDeque<PendingWrite>>,
    may_wait: Arc<AtomicBool>,
    health: HealthReport,
    changes: watch::Sender<u64>,
    clock: SharedClock,
    in_trouble: Option<Instant>,
}

#[derive(Debug)]
struct PendingWrite {
    job: WriteJob,
    doubt: Option<Doubt>,
    doubtful_since: Option<Instant>,
}

impl PostgresCommitter {
    /// The queue has no bound of its own: each caller waits for its write.
    pub(super) fn start(pool: PgPool, has_timeline: bool, clock: SharedClock) -> StoreWriter {
        let (hand_in, jobs) = mpsc::unbounded_channel();
        let writer = StoreWriter {
            jobs: hand_in,
            waits: Arc::default(),
            health: HealthReport::default(),
            changes: watch::Sender::new(0),
        };
        let committer = Self {
            pool,
            has_timeline,
            jobs,
            under_way: JoinSet::new(),
            ready: VecDeque::new(),
            waiting: Vec::new(),
            lines: HashMap::new(),
            may_wait: Arc::clone(&writer.waits),
            health: writer.health.clone(),
            changes: writer.changes.clone(),
            clock,
            in_trouble: None,
        };
        tokio::spawn(committer.run());
        writer
    }

    /// Until nobody is left who could write, and what was begun has ended.
    async fn run(mut self) {
        let mut is_open = true;
        while is_open || !self.under_way.is_empty() || !self.ready.is_empty() {
            // No more than there are connections: what begins beyond that would only wait in the
            // pool, where it can time out.
            let has_room = self.under_way.len() < WRITERS as usize;
            // What was handed in before goes before what comes now.
            if has_room && let Some(next) = self.ready.pop_front() {
                self.begin(next);
                continue;
            }
            let try_again = self.in_trouble.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                Some(ended) = self.under_way.join_next() => {
                    // A task that panicked has dropped its job, whose caller hears of it.
                    if let Ok((write, attempt)) = ended {
                        self.ended(write, attempt);
                    }
                }
                () = sleep_until(try_again), if is_open && self.in_trouble.is_some() => self.try_again(),
                job = self.jobs.recv(), if is_open && has_room => match job {
                    Some(job) => self.begin_in_order(PendingWrite::new(job)),
                    None => is_open = false,
                },
            }
        }
        self.pool.close().await;
    }

    /// One whose order counts waits for the one before it to be over.
    fn begin_in_order(&mut self, write: PendingWrite) {
        let Some(line) = write.line() else {
            return self.begin(write);
        };
        match self.lines.get_mut(line) {
            Some(waiting) => waiting.push_back(write),
            None => {
                self.lines.insert(line.to_owned(), VecDeque::new());
                self.begin(write);
            }
        }
    }

    fn begin(&mut self, mut write: PendingWrite) {
        let (pool, has_timeline) = (self.pool.clone(), self.has_timeline);
        self.under_way.spawn(async move {
            let ended = match write.doubt.take() {
                // Never the statements again while it is in doubt: they may have been committed.
                Some(doubt) => settle(&pool, doubt).await,
                None => attempt(&pool, &write.job.statements, has_timeline).await,
            };
            (write, ended)
        });
    }

    fn ended(&mut self, write: PendingWrite, attempt: CommitAttempt) {
        match attempt {
            CommitAttempt::Committed(written) => {
                self.changes.send_modify(|commits| *commits += 1);
                self.over(write, Ok(written));
                self.answered();
            }
            CommitAttempt::Refused(error) => {
                self.over(write, Err(named(error)));
                self.answered();
            }
            CommitAttempt::Failed(error) => self.failed(write, error),
            CommitAttempt::InDoubt(doubt, error) => self.in_doubt(write, doubt, error),
            CommitAttempt::Unknown(error) => self.over(write, Err(named(error))),
        }
    }

    fn failed(&mut self, mut write: PendingWrite, error: sqlx::Error) {
        self.trouble(&error);
        write.doubtful_since = None;
        if write.job.without_room == WithoutRoom::Wait && self.may_wait.load(Ordering::SeqCst) {
            self.waiting.push(write);
        } else {
            self.over(write, Err(named(error)));
        }
    }

    fn in_doubt(&mut self, mut write: PendingWrite, doubt: Doubt, error: sqlx::Error) {
        self.trouble(&error);
        let since = *write.doubtful_since.get_or_insert_with(Instant::now);
        let waits =
            write.job.without_room == WithoutRoom::Wait && self.may_wait.load(Ordering::SeqCst);
        // Whoever may not wait is told at last that it failed, although it may be there: a caller
        // that hangs is worse than one that asks again.
        if waits || since.elapsed() < MOST_DOUBT {
            write.doubt = Some(doubt);
            self.waiting.push(write);
        } else {
            self.over(write, Err(named(error)));
        }
    }

    /// Says what came of it, and lets the next of its line begin.
    fn over(&mut self, write: PendingWrite, ended: Result<Vec<StatementResult>, sqlx::Error>) {
        if let Some(line) = write.line()
            && let Some(waiting) = self.lines.get_mut(line)
        {
            match waiting.pop_front() {
                Some(next) => self.ready.push_back(next),
                None => drop(self.lines.remove(line)),
            }
        }
        // A caller who went away does not undo what was committed.
        let _ = write.job.answer.send(ended);
    }

    fn trouble(&mut self, error: &sqlx::Error) {
        let why = in_words(error);
        if self.health.degraded(&why, self.clock.now()) {
            tracing::error!(why, "the store cannot be written");
        }
        self.in_trouble = Some(Instant::now() + TRY_AGAIN);
    }

    /// The database answers.
    fn answered(&mut self) {
        if self.in_trouble.is_none() {
            return;
        }
        if self.waiting.is_empty() && self.ready.is_empty() {
            self.in_trouble = None;
            if self.health.recovered() {
                tracing::info!("the store can be written again");
            }
        } else {
            self.in_trouble = Some(Instant::now());
        }
    }

    /// What waits is tried; with nothing left to write, something that means nothing: nobody else might write
    /// for hours, and the store would be called broken all the time.
    fn try_again(&mut self) {
        // Whatever comes of it sets it anew.
        self.in_trouble = Some(Instant::now() + TRY_AGAIN);
        self.ready.extend(self.waiting.drain(..));
        if self.ready.is_empty() && self.under_way.is_empty() {
            let (job, _) = probe();
            self.ready.push_back(PendingWrite::new(job));
        }
    }
}

impl PendingWrite {
    fn new(job: WriteJob) -> Self {
        Self {
            job,
            doubt: None,
            doubtful_since: None,
        }
    }

    /// The name of those whose order counts.
    fn line(&self) -> Option<&str> {
        let mut statements = self.job.statements.iter();
        statements.find_map(SqlStatement::line)
    }
}
