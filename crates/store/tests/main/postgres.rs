//! The store on a PostgreSQL that goes away at every moment at which it can.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermetic_store::{MessageEnd, PostgresAddress, RowOwner, Store};
use hermetic_types::{ConversationKey, GatewayId, SystemClock, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::postgres_server::PostgresServer;

const LONG: Duration = Duration::from_secs(60);

fn server(test: &str) -> Option<PostgresServer> {
    let server = PostgresServer::private();
    if server.is_none() {
        eprintln!("SKIP: {test}: there is no postgres here");
    }
    server
}

async fn open(address: &str) -> Store {
    let address: PostgresAddress = address.parse().unwrap();
    let opened = Store::open_postgres(&address, GatewayId::sole(), SystemClock::shared());
    opened.await.unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Listens where a server would, and cuts each connection after so many bytes of it went on.
struct CuttingProxy {
    folder: tempfile::TempDir,
    /// Bytes that may still go to the server; nothing is cut while it is 0.
    left: Arc<AtomicU64>,
}

impl CuttingProxy {
    fn before(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (left, server) = (Arc::new(AtomicU64::new(0)), server.to_owned());
        let counted = Arc::clone(&left);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, left) = (server.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let _ = pass_on(client, server, left).await;
                });
            }
        });
        Self { folder, left }
    }

    fn address(&self, of_server: &str) -> String {
        let (_, database) = of_server.rsplit_once('/').unwrap();
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://hermetic@{socket}/{database}")
    }
}

async fn pass_on(client: UnixStream, server: PathBuf, left: Arc<AtomicU64>) -> io::Result<()> {
    let server = UnixStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut bytes = [0; 4096];
    loop {
        let count = from_client.read(&mut bytes).await?;
        let bound = left.load(Ordering::SeqCst);
        if count == 0 {
            break;
        }
        let whole = count as u64;
        if bound > 0 && bound <= whole {
            // The server gets this, and its answer reaches nobody.
            back.abort();
            left.store(0, Ordering::SeqCst);
            to_server.write_all(&bytes[..count]).await?;
            to_server.shutdown().await?;
            return Ok(());
        }
        if bound > 0 {
            left.fetch_sub(whole, Ordering::SeqCst);
        }
        to_server.write_all(&bytes[..count]).await?;
    }
    back.abort();
    Ok(())
}

/// Wherever the connection is cut, in what is sent or in what is answered, every write is there once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_anywhere_loses_and_doubles_nothing() {
    let Some(server) = server("a_connection_that_is_cut_anywhere_loses_and_doubles_nothing") else {
        return;
    };
    let direct = server.new_database().await;
    let proxy = CuttingProxy::before(&server.socket());
    let store = open(&proxy.address(&direct)).await;
    store.wait_for_room();
    let key = ConversationKey::new("k");
    let mut written = Vec::new();
    for cut in (1..420).step_by(5) {
        let line = format!("line {cut}");
        proxy.left.store(cut, Ordering::SeqCst);
        let history = store.history();
        let appended = history.append(&key, &line, at(1));
        timeout(LONG, appended).await.unwrap().unwrap();
        written.push(line);
    }
    proxy.left.store(0, Ordering::SeqCst);
    let found = open(&direct).await.history().recent(&key, 1000).await;
    assert_eq!(found.unwrap(), written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_is_missed_in_words_and_waited_for() {
    let Some(server) = server("a_server_that_is_killed_is_missed_in_words_and_waited_for") else {
        return;
    };
    let store = open(&server.new_database().await).await;
    store.wait_for_room();
    let (key, inbox) = (ConversationKey::new("k"), store.inbox());
    let taken = inbox.accept("telegram", "1", &key, "{}", at(1)).await;
    let message = taken.unwrap().unwrap();
    server.kill();
    // What something happens after fails; what is only remembered waits.
    let refused = inbox.accept("telegram", "2", &key, "{}", at(2)).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.remedy().contains("database"),
        "{}",
        refused.remedy()
    );
    let health = format!("{:?}", store.health().health());
    assert!(health.contains("database"), "{health}");
    let waiting = tokio::spawn({
        let store = store.clone();
        async move {
            let reply = ("telegram", "{}", "hi");
            let deliveries = store.deliveries();
            deliveries
                .queue_and_end(message, MessageEnd::Answered, reply, at(3))
                .await
        }
    });
    let reading = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.open(RowOwner::ThisGateway).await }
    });
    server.start().unwrap();
    timeout(LONG, waiting).await.unwrap().unwrap().unwrap();
    timeout(LONG, reading).await.unwrap().unwrap().unwrap();
    let due = store.deliveries().due(RowOwner::ThisGateway).await.unwrap();
    assert_eq!(due.len(), 1);
    assert!(
        store.health().health().is_ok(),
        "{:?}",
        store.health().health()
    );
    let again = inbox.accept("telegram", "2", &key, "{}", at(4)).await;
    assert!(again.unwrap().is_some(), "it was never accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_first_starts_at_once_all_open_and_a_newer_schema_is_refused_two_steps_on() {
    let name = "several_first_starts_at_once_all_open_and_a_newer_schema_is_refused_two_steps_on";
    let Some(server) = server(name) else {
        return;
    };
    let address = server.new_database().await;
    let opened = (0..4).map(|_| {
        let address = address.clone();
        tokio::spawn(async move { open(&address).await.documents().put("a", "b").await })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
    let mut direct = sqlx::PgPool::connect(&address).await.unwrap();
    later(&mut direct, 9001).await;
    drop(open(&address).await);
    later(&mut direct, 9002).await;
    let address: PostgresAddress = address.parse().unwrap();
    let refused = Store::open_postgres(&address, GatewayId::sole(), SystemClock::shared()).await;
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("newer version"), "{refused}");
}

async fn later(database: &mut sqlx::PgPool, version: i64) {
    let step =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                VALUES ($1, 'later', true, '\\x00', 1)";
    sqlx::query(step)
        .bind(version)
        .execute(&*database)
        .await
        .unwrap();
}
