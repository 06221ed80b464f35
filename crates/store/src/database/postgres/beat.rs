//! One connection for signs of life, which wait behind nothing else.
//!
//! A holder that cannot say that it lives ends itself. Behind the writes of a busy gateway, or on a connection of
//! a pool that a network swallowed, a sign of life would come too late although the database is well.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions, PgRow};
use tokio::sync::Mutex;

use super::attempt::within;
use super::failure::{PostgresFailure, named};
use super::opening::connect;
use crate::database::SqlStatement;

/// Several fit into the time after which a holder ends itself.
const STEP: Duration = Duration::from_secs(3);

/// A connection that broke meanwhile, or one that nothing comes back on, is replaced once.
const TRIES: usize = 2;

#[derive(Debug)]
pub(in crate::database) struct BeatConnection {
    options: PgConnectOptions,
    /// Taken out while it is used: one that was given up half-way is dropped and not used again.
    idle: Mutex<Option<PgConnection>>,
}

impl BeatConnection {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self {
            options,
            idle: Mutex::new(None),
        }
    }

    /// Runs one statement, which is a transaction by itself, and may run twice: it has to come to the same.
    pub(in crate::database) async fn run(
        &self,
        statement: &SqlStatement,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut idle = self.idle.lock().await;
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let failed = match self.run_once(&mut idle, statement).await {
                Ok(rows) => return Ok(rows),
                Err(error) => error,
            };
            if tries == 0 || PostgresFailure::of(&failed) == PostgresFailure::Statement {
                return Err(named(failed));
            }
        }
    }

    /// Listens on a connection of its own; nothing where that cannot be had.
    pub(in crate::database) async fn listen(&self, channel: &'static str) -> Option<LeaseListener> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(STEP)
            .max_lifetime(None)
            .connect_lazy_with(self.options.clone());
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(channel).await?;
            Ok(listener)
        };
        match within(STEP, listening).await {
            Ok(listener) => Some(LeaseListener(listener)),
            Err(error) => {
                tracing::debug!(%error, "releases are not heard, only looked for");
                None
            }
        }
    }

    async fn run_once(
        &self,
        idle: &mut Option<PgConnection>,
        statement: &SqlStatement,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut connection = match idle.take() {
            Some(connection) => connection,
            None => connect(self.options.clone()).await?,
        };
        let rows = statement.postgres_query().fetch_all(&mut connection);
        let rows = within(STEP, rows).await?;
        *idle = Some(connection);
        Ok(rows)
    }
}

/// Hears what others tell on a channel.
#[derive(Debug)]
pub(crate) struct LeaseListener(PgListener);

impl LeaseListener {
    /// Waits for the next word; `false` if none will come any more.
    pub(crate) async fn heard(&mut self) -> bool {
        self.told().await.is_some()
    }

    /// The same, and what the word was.
    pub(crate) async fn told(&mut self) -> Option<String> {
        let heard = self.0.recv().await.ok()?;
        Some(heard.payload().to_owned())
    }
}
