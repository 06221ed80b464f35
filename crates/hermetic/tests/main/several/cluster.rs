//! Homes that share an installation and a database.

use std::fs::{self, File};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::PgPool;
use tokio::time::{sleep, timeout};

use crate::hermetic::Hermetic;
use crate::postgres_server::PostgresServer;

pub(super) const LONG: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

const INSTALLATION: &str = "several-gateways";

/// Everything is ended with the test, whatever happens.
pub(super) struct Cluster {
    pub(super) members: Vec<Member>,
    pub(super) rows: PgPool,
    pub(super) server: PostgresServer,
}

/// A home, and its gateway if it has one.
pub(super) struct Member {
    pub(super) home: Hermetic,
    child: Option<Child>,
}

impl Cluster {
    /// Homes without gateways; `None`, said aloud, where there is no PostgreSQL.
    /// `backend` is where chats run.
    pub(super) async fn new(
        test: &str,
        homes: usize,
        (backend, config, env): (&str, &str, &str),
    ) -> Option<Self> {
        Self::having(test, homes, "", (backend, config, env)).await
    }

    /// The same with gateways that serve together.
    pub(super) async fn sharing(
        test: &str,
        homes: usize,
        (config, env): (&str, &str),
    ) -> Option<Self> {
        let more = "share_work: true, dashboard: {enabled: false}, ";
        Self::having(test, homes, more, ("ssh", config, env)).await
    }

    async fn having(
        test: &str,
        homes: usize,
        more: &str,
        (backend, config, env): (&str, &str, &str),
    ) -> Option<Self> {
        let Some(server) = PostgresServer::private() else {
            eprintln!("SKIP: {test}: there is no postgres here");
            return None;
        };
        let address = server.new_database().await;
        let rows = PgPool::connect(&address).await.unwrap();
        let members = (0..homes)
            .map(|member| {
                let address = format!("{address}?application_name=member{member}");
                let gateway = format!("{{{more}terminal_backend: {backend}, store: '{address}'}}");
                let home = Hermetic::with(&format!("{config}\ngateway: {gateway}\n"));
                let home = home.file(".env", env);
                fs::create_dir(home.path("hermetic")).unwrap();
                let home = home.file("hermetic/installation", INSTALLATION);
                Member { home, child: None }
            })
            .collect();
        Some(Self {
            members,
            rows,
            server,
        })
    }

    /// Which members serve, taking conversations on where they share, and were seen lately.
    pub(super) async fn serving(&self) -> Vec<usize> {
        let query = "SELECT DISTINCT gateways.name FROM leases
             JOIN gateways ON gateways.id = leases.gateway
             WHERE (leases.name = 'serving' OR leases.name LIKE 'gateway:%' AND gateways.serves = 1) AND gateways.id <> 'several'
             AND gateways.seen_at > EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - 15000";
        self.named(query, "").await
    }

    /// Which member serves and was seen lately.
    pub(super) async fn holder(&self) -> Option<usize> {
        self.serving().await.first().copied()
    }

    /// Which member serves this conversation.
    pub(super) async fn holder_of(&self, chat: i64) -> Option<usize> {
        let query = "SELECT gateways.name FROM conversation_holders
             JOIN gateways ON gateways.id = conversation_holders.gateway
             WHERE conversation_holders.conversation LIKE '%:' || $1";
        self.named(query, &chat.to_string()).await.first().copied()
    }

    /// Which member listens to the one account.
    pub(super) async fn listener(&self) -> Option<usize> {
        let query = "SELECT gateways.name FROM leases JOIN gateways ON gateways.id = leases.gateway
             WHERE leases.name LIKE 'account:%'";
        self.named(query, "").await.first().copied()
    }

    async fn named(&self, query: &'static str, value: &str) -> Vec<usize> {
        let names = sqlx::query_scalar::<_, String>(query);
        let names = match value {
            "" => names,
            value => names.bind(value.to_owned()),
        };
        let names = names.fetch_all(&self.rows).await.unwrap_or_default();
        let is_named = |member: &Member| {
            let folder = member.home.path("").display().to_string();
            let folder = folder.trim_end_matches('/').to_owned();
            names.iter().any(|name| name.ends_with(&folder))
        };
        let members = self.members.iter().enumerate();
        let named = members.filter(|(_, member)| is_named(member));
        named.map(|(at, _)| at).collect()
    }

    /// Waits until all of these serve.
    pub(super) async fn all_serve(&self, all: &[usize]) {
        let waiting = async {
            while !all_in(all, &self.serving().await) {
                sleep(LOOK_AGAIN).await;
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("not all serve: {}", self.logs()));
    }

    /// Waits until somebody serves who is none of these.
    pub(super) async fn next_holder(&self, not: &[usize]) -> usize {
        let waiting = async {
            loop {
                match self.holder().await {
                    Some(holder) if !not.contains(&holder) => return holder,
                    _ => sleep(LOOK_AGAIN).await,
                }
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("nobody takes over: {}", self.logs()))
    }

    /// As if whoever serves had been silent for long already: spares a test the wait, not the hand-over.
    pub(super) async fn age_holder(&self) {
        let age = "UPDATE gateways SET seen_at = seen_at - 15000
                   WHERE id IN (SELECT gateway FROM leases)";
        sqlx::query(age).execute(&self.rows).await.unwrap();
    }

    /// As if this member had been silent for long already: spares a test the wait, not the hand-over.
    pub(super) async fn age(&self, member: usize) {
        let age = "UPDATE gateways SET seen_at = seen_at - 15000 WHERE name LIKE '%' || $1";
        let folder = self.members[member].home.path("").display().to_string();
        let folder = folder.trim_end_matches('/').to_owned();
        let aged = sqlx::query(age).bind(folder).execute(&self.rows).await;
        assert!(aged.unwrap().rows_affected() > 0);
    }

    pub(super) fn logs(&self) -> String {
        let log = |member: &Member| {
            let log = fs::read_to_string(member.home.path("log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            lines[lines.len().saturating_sub(40)..].join("\n")
        };
        self.members
            .iter()
            .map(log)
            .collect::<Vec<_>>()
            .join("\n--\n")
    }
}

fn all_in(all: &[usize], found: &[usize]) -> bool {
    all.iter().all(|one| found.contains(one))
}

impl Member {
    pub(super) fn start(&mut self) {
        let path = self.home.path("log");
        let log = File::options().create(true).append(true).open(path);
        let mut command = self.home.command(&["gateway", "run"]);
        command.stdout(Stdio::null()).stderr(log.unwrap());
        self.child = Some(command.spawn().unwrap());
    }

    pub(super) fn is_there(&self) -> bool {
        self.child.is_some()
    }

    pub(super) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("a gateway runs here");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    pub(super) fn kill(&mut self) {
        let mut child = self.child.take().expect("a gateway runs here");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// How it ended by itself, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.child.as_mut()?.try_wait().unwrap();
        if ended.is_some() {
            self.child = None;
        }
        ended
    }

    pub(super) async fn end(&mut self) -> ExitStatus {
        let waiting = async {
            loop {
                match self.ended() {
                    Some(ended) => return ended,
                    None => sleep(LOOK_AGAIN).await,
                }
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("it does not end: {}", self.log()))
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.home.path("log")).unwrap_or_default()
    }

    /// Waits until its log has this word; the rest of that line.
    pub(super) async fn says(&self, word: &str) -> String {
        let waiting = async {
            loop {
                let log = self.log();
                if let Some((_, after)) = log.split_once(word) {
                    return after.lines().next().unwrap_or_default().to_owned();
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("it never says {word:?}: {}", self.log()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
