//! What looking at a gateway costs, with a thousand conversations and a hundred sandboxes at work: the pages,
//! what a browser fetches first, how soon a change is heard.
//!
//! `cargo bench -p hermetic-dashboard`; with `--profile dev`, fewer of each, to see that it runs. `/metrics`
//! needs a whole gateway and is not measured here.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_access::{MemoryPairings, PairingService};
use hermetic_approvals::{ApprovalMetrics, ApprovalParts, ApprovalRegistry};
use hermetic_audit::{AuditLog, AuditPaths};
use hermetic_dashboard::{
    AccessKey, AccessSettings, ActFailed, BudgetRow, ConditionReport, DashboardParts,
    DashboardRole, EgressFeed, GatewayView, ListedPerson, SandboxUse, SealReport, SettingsReport,
    access_link, dashboard_routes,
};
use hermetic_egress::{
    EgressDecision, EgressEntry, EgressJournal, EgressMethod, EgressRecorder, RuleBook,
};
use hermetic_policy::VerdictExplanation;
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_sandbox::{
    LiveUse, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_store::{LedgerEntry, LedgerState, MessageEnd, Store};
use hermetic_types::{
    BackendKind, Clock as _, ConversationKey, InstallationId, SandboxId, SandboxLimits, SystemClock,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

type Done<T> = Result<T, Box<dyn Error>>;

const CONVERSATIONS: usize = 1000;
/// Of each conversation, over a day.
const MESSAGES: usize = 20;
const SANDBOXES: usize = 100;
const LOOKS: usize = if cfg!(debug_assertions) { 20 } else { 300 };
const CHANGES: usize = if cfg!(debug_assertions) { 10 } else { 100 };
/// The bounds that are promised: server time of the overview, from a change to the browser, and what a browser
/// fetches first.
const OVERVIEW_BOUND: Duration = Duration::from_millis(10);
const HEARD_BOUND: Duration = Duration::from_millis(100);
const FIRST_PAGE_BOUND: usize = 150_000;

#[tokio::main]
async fn main() -> Done<()> {
    let folder = tempfile::tempdir()?;
    let clock = SystemClock::shared();
    let store = Store::open(&folder.path().join("state.db"), Arc::clone(&clock)).await?;
    let filled = Instant::now();
    fill(&store).await?;
    println!(
        "{CONVERSATIONS} conversations of {MESSAGES} messages, {SANDBOXES} sandboxes: filled in {:?}",
        filled.elapsed()
    );
    let visitor = Visitor::enter(folder.path(), &store).await?;
    overview(&visitor).await?;
    first_page(&visitor).await?;
    heard(&visitor, &store).await
}

async fn fill(store: &Store) -> Done<()> {
    let (inbox, ledger, now) = (store.inbox(), store.ledger(), SystemClock.now());
    let payload = serde_json::json!({
        "account": "telegram", "update": "1", "message": "1",
        "place": {"chat": "7", "kind": "dm", "thread": null},
        "sender": {"id": "7", "display": "Alice", "is_bot": false, "roles": []},
        "text": "What is in the workspace, and what does the report say about it?",
        "reply_to": null, "mentions_us": true, "attachments": [], "received_at": now,
    })
    .to_string();
    for message in 0..MESSAGES {
        let ended = (0..CONVERSATIONS).map(|number| {
            let (inbox, payload) = (&inbox, &payload);
            async move {
                let key = conversation(number);
                let ago = Duration::from_secs((message * 4000 + number) as u64);
                let at = now.minus(ago);
                let update = format!("{number}-{message}");
                let row = inbox.accept("telegram", &update, &key, payload, at).await?;
                let Some(row) = row else { return Ok(()) };
                let end = match number % 50 {
                    0 => MessageEnd::Failed,
                    _ => MessageEnd::Answered,
                };
                let ended = at.plus(Duration::from_secs(3));
                inbox.end(row, end, None, ended).await
            }
        });
        future::try_join_all(ended).await?;
    }
    for number in 0..SANDBOXES {
        let id = SandboxId::random();
        let key = conversation(number);
        let spec = serde_json::to_string(&spec(&id, &key))?;
        ledger
            .name(&id, &key, BackendKind::Native, &spec, now)
            .await?;
        ledger.mark(&id, LedgerState::Running).await?;
    }
    Ok(())
}

fn spec(id: &SandboxId, conversation: &ConversationKey) -> SandboxSpec {
    SandboxSpec {
        installation: InstallationId::random(),
        conversation: conversation.clone(),
        id: id.clone(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        lifetime: Duration::from_secs(3600),
        persistence: SandboxPersistence::Kept,
        lifeline: SandboxLifeline::Ledger,
    }
}

fn conversation(number: usize) -> ConversationKey {
    ConversationKey::new(format!("agent:main:telegram:dm:{number}"))
}

/// On a connection that stays: what the server takes, and the loopback.
async fn overview(visitor: &Visitor) -> Done<()> {
    for path in ["/", "/conversations", "/sandboxes", "/usage", "/egress"] {
        let mut line = visitor.connect().await?;
        let mut times = Vec::new();
        for _ in 0..LOOKS {
            let begun = Instant::now();
            visitor.get(&mut line, path).await?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        println!(
            "{path:>24}: {:?} half of them, {:?} 99 of 100",
            times[LOOKS / 2],
            times[LOOKS * 99 / 100]
        );
        if path == "/" {
            tell(times[LOOKS / 2] <= OVERVIEW_BOUND, "10 ms");
        }
    }
    Ok(())
}

async fn first_page(visitor: &Visitor) -> Done<()> {
    let mut line = visitor.connect().await?;
    let mut bytes = 0;
    for path in [
        "/",
        "/assets/dashboard.css",
        "/assets/dashboard.js",
        "/assets/icon.svg",
    ] {
        bytes += visitor.get(&mut line, path).await?;
    }
    println!("{:>24}: {:.1} kB", "first page", bytes as f64 / 1000.0);
    tell(bytes <= FIRST_PAGE_BOUND, "150 kB");
    Ok(())
}

fn tell(is_kept: bool, bound: &str) {
    let word = if is_kept { "kept" } else { "NOT kept" };
    println!("{:>24}  bound of {bound}: {word}", "");
}

/// From a commit to the line on the stream. A change that comes right after another waits for the shortest gap.
async fn heard(visitor: &Visitor, store: &Store) -> Done<()> {
    let mut stream = visitor.connect().await?;
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        visitor.address, visitor.cookie
    );
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("event: reset") {
            break;
        }
    }
    let mut times = Vec::new();
    for number in 0..CHANGES {
        tokio::time::sleep(Duration::from_millis(130)).await;
        let update = format!("heard {number}");
        let now = SystemClock.now();
        let inbox = store.inbox();
        let begun = Instant::now();
        inbox
            .accept("telegram", &update, &conversation(number), "{}", now)
            .await?;
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("event: activity") {
                break;
            }
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!(
        "{:>24}: {:?} half of them, {:?} the latest",
        "a change is heard after",
        times[CHANGES / 2],
        times[CHANGES - 1]
    );
    tell(times[CHANGES - 1] <= HEARD_BOUND, "100 ms");
    Ok(())
}

/// Somebody who is in.
struct Visitor {
    address: SocketAddr,
    cookie: String,
}

impl Visitor {
    async fn enter(folder: &Path, store: &Store) -> Done<Self> {
        let clock = SystemClock::shared();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let audit = AuditPaths::beside(&folder.join("audit.jsonl"));
        let redactor = Redactor::new([], RedactorSettings::default());
        let journal = EgressJournal::at(folder.join("egress.jsonl"), Arc::clone(&clock));
        let feed = EgressFeed::after(&journal, Arc::clone(&clock));
        for number in 0..2000 {
            feed.write(&connection(number));
        }
        let approvals = ApprovalRegistry::new(ApprovalParts {
            store,
            audit: Arc::new(AuditLog::open(audit.record())?),
            redactor: redactor.clone(),
            timeout: Duration::from_secs(300),
            reviewer: None,
            clock: Arc::clone(&clock),
            metrics: ApprovalMetrics::default(),
        });
        let parts = DashboardParts {
            gateway: Arc::new(StillGateway(Instant::now())),
            store: store.clone(),
            approvals,
            pairing: PairingService::new(Arc::new(MemoryPairings::default())),
            audit,
            rules: RuleBook::at(folder.join("egress.rules")),
            egress: feed,
            redactor,
            chat: None,
            terminals: None,
            clock: Arc::clone(&clock),
            access: AccessSettings {
                state: folder.to_owned(),
                host: "127.0.0.1".to_owned(),
                password: None,
                proxy: None,
                names: Vec::new(),
            },
            most_streams: 16,
        };
        let key = AccessKey::load_or_create(folder)?;
        let routes = dashboard_routes(parts, &CancellationToken::new());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let link = access_link(&key, DashboardRole::Operator, "ada", clock.now())?;
        let mut line = TcpStream::connect(address).await?;
        let request = format!(
            "POST /enter?key={link} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        line.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        line.read_to_string(&mut answer).await?;
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        Ok(Self {
            address,
            cookie: cookie.ok_or("nobody was let in")?.to_owned(),
        })
    }

    async fn connect(&self) -> Done<TcpStream> {
        let line = TcpStream::connect(self.address).await?;
        line.set_nodelay(true)?;
        Ok(line)
    }

    /// How many bytes came.
    async fn get(&self, line: &mut TcpStream, path: &str) -> Done<usize> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
            self.address, self.cookie
        );
        line.write_all(request.as_bytes()).await?;
        let mut reader = BufReader::new(line);
        let (mut head, mut length) = (0, 0);
        loop {
            let mut text = String::new();
            head += reader.read_line(&mut text).await?;
            if head == text.len() && !text.contains(" 200 ") {
                return Err(format!("{path}: {text}").into());
            }
            if let Some(value) = text.strip_prefix("content-length: ") {
                length = value.trim().parse()?;
            }
            if text == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await?;
        Ok(head + length)
    }
}

fn connection(number: usize) -> EgressEntry {
    EgressEntry {
        conversation: conversation(number % CONVERSATIONS),
        host: format!("host-{}.example", number % 40),
        port: 443,
        address: None,
        how: EgressMethod::Connect,
        rule: "allow *.example".to_owned(),
        verdict: match number % 5 {
            0 => EgressDecision::Refused {
                reason: "no rule allows it".to_owned(),
            },
            _ => EgressDecision::Opened,
        },
        bytes_up: 0,
        bytes_down: 0,
        duration: Duration::ZERO,
    }
}

/// A gateway that tells at once what it is asked, so that what is measured is the dashboard.
#[derive(Debug)]
struct StillGateway(Instant);

impl GatewayView for StillGateway {
    fn condition(&self) -> ConditionReport {
        ConditionReport::default()
    }

    fn seal(&self) -> BoxFuture<'_, SealReport> {
        future::ready(SealReport::default()).boxed()
    }

    fn settings(&self) -> SettingsReport {
        SettingsReport::default()
    }

    fn listed_people(&self) -> Vec<ListedPerson> {
        Vec::new()
    }

    fn budgets(&self) -> Vec<BudgetRow> {
        Vec::new()
    }

    fn explain(&self, _: &ConversationKey, _: &str) -> Option<Box<VerdictExplanation>> {
        None
    }

    fn sandbox_use(
        &self,
        _: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, SandboxUse>> {
        future::ready(HashMap::new()).boxed()
    }

    /// Each of them at work: a page with figures is the dearer one.
    fn live_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, LiveUse>> {
        let uses = sandboxes.into_iter().enumerate().map(|(number, (_, id))| {
            let used = LiveUse {
                cpu_time: Some(self.0.elapsed() / 3),
                memory_bytes: Some((number as u64 + 1) << 20),
                pids: Some(number as u64 % 40),
            };
            (id, used)
        });
        future::ready(uses.collect()).boxed()
    }

    fn stop<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        future::ready(Ok(())).boxed()
    }

    fn reset<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        future::ready(Ok(())).boxed()
    }

    fn destroy<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        future::ready(Ok(())).boxed()
    }

    fn stop_sandbox<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        future::ready(Ok(())).boxed()
    }

    fn destroy_sandbox<'a>(&'a self, _: &'a LedgerEntry) -> BoxFuture<'a, Result<(), ActFailed>> {
        future::ready(Ok(())).boxed()
    }
}
