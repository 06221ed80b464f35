//! The databases that the handles are tested on: a file, and a PostgreSQL where there is one.

use std::thread;

use hermetic_types::{GatewayId, SystemClock};
use tempfile::TempDir;

use crate::{OpenError, PostgresAddress, Store};

#[path = "../tests/postgres_server/mod.rs"]
pub(crate) mod postgres_server;

use postgres_server::PostgresServer;

/// An empty database for one test.
#[derive(Debug)]
pub(crate) enum TestDatabase {
    Sqlite(TempDir),
    Postgres(PostgresAddress),
}

impl TestDatabase {
    /// One of each kind.
    pub(crate) async fn each() -> Vec<Self> {
        let sqlite = Self::Sqlite(tempfile::tempdir().unwrap());
        std::iter::once(sqlite)
            .chain(Self::postgres().await)
            .collect()
    }

    /// Says so where there is none.
    pub(crate) async fn postgres() -> Option<Self> {
        let server = tokio::task::spawn_blocking(PostgresServer::shared);
        let Some(server) = server.await.unwrap() else {
            let test = thread::current();
            let test = test.name().unwrap_or("a test").to_owned();
            eprintln!("SKIP: {test} on PostgreSQL: there is no postgres here");
            return None;
        };
        let address = server.new_database().await.parse().unwrap();
        Some(Self::Postgres(address))
    }

    /// May be opened several times, as by several processes.
    pub(crate) async fn open(&self) -> Result<Store, OpenError> {
        self.open_as(GatewayId::sole()).await
    }

    pub(crate) async fn open_as(&self, gateway: GatewayId) -> Result<Store, OpenError> {
        let clock = SystemClock::shared();
        match self {
            Self::Sqlite(folder) => {
                Store::open_as(&folder.path().join("s.db"), gateway, clock).await
            }
            Self::Postgres(address) => Store::open_postgres(address, gateway, clock).await,
        }
    }
}
