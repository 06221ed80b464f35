//! The store on a PostgreSQL that goes away at every moment at which it can.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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
    way: Arc<Way>,
}

/// What becomes of what is said to the server.
struct Way {
    server: Mutex<PathBuf>,
    /// Bytes that may still go to it; nothing is cut while it is 0.
    left: AtomicU64,
    /// Whether what is said last before a cut does not reach it either.
    is_lost: AtomicBool,
    /// Whether a commit is lost, and everything after it.
    drops_commits: AtomicBool,
    /// Nothing goes through.
    is_shut: AtomicBool,
}

impl CuttingProxy {
    fn before(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let way = Arc::new(Way {
            server: Mutex::new(server.to_owned()),
            left: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            drops_commits: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
        });
        let kept = Arc::clone(&way);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let way = Arc::clone(&kept);
                tokio::spawn(async move {
                    let _ = pass_on(client, way).await;
                });
            }
        });
        Self { folder, way }
    }

    fn address(&self, of_server: &str) -> String {
        let (_, database) = of_server.rsplit_once('/').unwrap();
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://hermetic@{socket}/{database}")
    }
}

async fn pass_on(client: UnixStream, way: Arc<Way>) -> io::Result<()> {
    let server = way.server.lock().unwrap().clone();
    let server = UnixStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut bytes = [0; 4096];
    loop {
        let count = from_client.read(&mut bytes).await?;
        let bound = way.left.load(Ordering::SeqCst);
        if count == 0 {
            break;
        }
        let said = &bytes[..count];
        let is_commit = said.windows(6).any(|word| word == b"COMMIT");
        if is_commit && way.drops_commits.load(Ordering::SeqCst) {
            way.is_shut.store(true, Ordering::SeqCst);
        }
        if way.is_shut.load(Ordering::SeqCst) {
            break;
        }
        let whole = count as u64;
        if bound > 0 && bound <= whole {
            // The answer reaches nobody; what was said reaches the server or does not.
            back.abort();
            way.left.store(0, Ordering::SeqCst);
            if !way.is_lost.load(Ordering::SeqCst) {
                to_server.write_all(said).await?;
            }
            to_server.shutdown().await?;
            return Ok(());
        }
        if bound > 0 {
            way.left.fetch_sub(whole, Ordering::SeqCst);
        }
        to_server.write_all(said).await?;
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
        proxy.way.is_lost.store(cut % 2 == 0, Ordering::SeqCst);
        proxy.way.left.store(cut, Ordering::SeqCst);
        let history = store.history();
        let appended = history.append(&key, &line, at(1));
        timeout(LONG, appended).await.unwrap().unwrap();
        written.push(line);
    }
    proxy.way.left.store(0, Ordering::SeqCst);
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

/// In a rolling update the newer program adds a column while this one runs, and what this one had prepared is of
/// the table as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_a_newer_program_adds_disturbs_nobody() {
    let Some(server) = server("a_column_that_a_newer_program_adds_disturbs_nobody") else {
        return;
    };
    let address = server.new_database().await;
    let store = open(&address).await;
    let (key, inbox) = (ConversationKey::new("k"), store.inbox());
    let accepted = inbox.accept("telegram", "1", &key, "{}", at(1)).await;
    assert!(accepted.unwrap().is_some());
    // On every connection that reads.
    let reads = || futures::future::join_all((0..8).map(|_| inbox.open(RowOwner::ThisGateway)));
    for read in reads().await {
        assert_eq!(read.unwrap().len(), 1);
    }
    let direct = sqlx::PgPool::connect(&address).await.unwrap();
    let add = sqlx::raw_sql("ALTER TABLE inbox ADD COLUMN later TEXT");
    add.execute(&direct).await.unwrap();
    for _ in 0..3 {
        for read in reads().await {
            assert_eq!(read.unwrap().len(), 1);
        }
    }
    assert!(store.health().health().is_ok());
}

/// A text that no index holds is refused or kept, and nothing behind it waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_any_length_holds_nothing_up() {
    let Some(server) = server("a_name_of_any_length_holds_nothing_up") else {
        return;
    };
    let store = open(&server.new_database().await).await;
    store.wait_for_room();
    let mut seed = 1_u64;
    let long: String = (0..20_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'0' + u8::try_from(seed >> 58).unwrap())
        })
        .collect();
    let (key, inbox) = (ConversationKey::new("k"), store.inbox());
    let accepted = inbox.accept("telegram", "1", &key, "{}", at(1)).await;
    let message = accepted.unwrap().unwrap();
    let calls = store.tool_calls();
    let begun = calls.begin(message, &long, "terminal", "{}", at(2));
    timeout(LONG, begun).await.unwrap().unwrap();
    let ended = calls.end((message, &long), "done", (&key, "a line"), at(3));
    timeout(LONG, ended).await.unwrap().unwrap();
    assert_eq!(calls.of(message).await.unwrap()[0].call, long);
    let again = calls.begin(message, &long, "terminal", "{}", at(4));
    let again = timeout(LONG, again).await.unwrap();
    assert!(again.is_err(), "one call is begun once");
    let refused = inbox.accept("telegram", &long, &key, "{}", at(5));
    let refused = timeout(LONG, refused).await.unwrap();
    assert!(refused.is_err(), "{refused:?}");
    assert!(store.health().health().is_ok(), "the store itself is well");
}

/// Takes connections and never says a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let _silent = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let socket = folder.path().display().to_string().replace('/', "%2F");
    let address = format!("postgres://hermetic@{socket}/x");
    let address: PostgresAddress = address.parse().unwrap();
    let opened = Store::open_postgres(&address, GatewayId::sole(), SystemClock::shared());
    let refused = timeout(LONG, opened).await.unwrap().unwrap_err();
    assert!(refused.to_string().contains("cannot reach"), "{refused}");
}

/// A lost commit is looked up by its number, and a standby that is promoted gives the same number to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_lost_with_its_server_is_not_taken_for_one_of_its_successor() {
    let test = "a_commit_that_was_lost_with_its_server_is_not_taken_for_one_of_its_successor";
    let Some(server) = server(test) else {
        return;
    };
    let direct = server.new_database().await;
    let proxy = CuttingProxy::before(&server.socket());
    let store = open(&proxy.address(&direct)).await;
    let key = ConversationKey::new("k");
    store.history().append(&key, "first", at(1)).await.unwrap();
    let standby = server.standby();
    proxy.way.drops_commits.store(true, Ordering::SeqCst);
    let losing = tokio::spawn({
        let store = store.clone();
        async move {
            let key = ConversationKey::new("k");
            store.history().append(&key, "lost", at(2)).await
        }
    });
    // Until the commit was tried, and nobody knows what came of it.
    let tried = async {
        while store.health().health().is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, tried).await.unwrap();
    server.kill();
    standby.start().unwrap();
    standby.promote();
    let successor = standby.address(direct.rsplit_once('/').unwrap().1);
    let other = open(&successor).await;
    for count in 0..20 {
        other
            .documents()
            .put("d", &count.to_string())
            .await
            .unwrap();
    }
    *proxy.way.server.lock().unwrap() = standby.socket();
    proxy.way.drops_commits.store(false, Ordering::SeqCst);
    proxy.way.is_shut.store(false, Ordering::SeqCst);
    let lost = timeout(LONG, losing).await.unwrap().unwrap();
    let there = other.history().recent(&key, 10).await.unwrap();
    assert_eq!(there, ["first"]);
    assert!(lost.is_err(), "{lost:?}");
    // The next one goes to the successor.
    store.history().append(&key, "next", at(3)).await.unwrap();
    let there = other.history().recent(&key, 10).await.unwrap();
    assert_eq!(there, ["first", "next"]);
}
