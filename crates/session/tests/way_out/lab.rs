//! Sandboxes with a gate, an origin behind it, and a record of what was decided.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_egress::{
    CertificateAuthority, CertificateBundle, ConversationScope, Credential, CredentialGrant,
    Egress, EgressDecision, EgressEntry, EgressLimits, EgressRecorder, EgressRules, HostName,
    Proxy, Resolver, RulesText, TrustRoots,
};
use hermetic_policy::{JudgementContext, Policy, PolicyRules, Verdict};
use hermetic_sandbox::{Backend, HostMount, NetworkMode, RunError, Sandbox, SandboxPersistence};
use hermetic_session::{PROXY_PORT, SandboxLease, SandboxPlan, Sandboxes, SpendingBook};
use hermetic_store::Store;
use hermetic_types::{
    BackendDescription, BackendKind, Command, ConversationKey, InstallationId, SandboxId, Secret,
    SystemClock,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::house::{House, USUAL};
use super::origin::Origin;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const MOST_OUTPUT: usize = 1 << 20;

/// The value no sandbox may ever see.
pub(crate) const SECRET: &str = "correct-horse-battery";

pub(crate) struct Lab {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) origin: Origin,
    pub(crate) record: Arc<Seen>,
    pub(crate) files: PathBuf,
    gate: Arc<Egress>,
    plan: SandboxPlan,
    installation: InstallationId,
    pub(crate) house: House,
    backend: Arc<dyn Backend>,
    store: Store,
    knocks: TaskTracker,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) code: i32,
}

#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) houses: &'static [House],
    pub(crate) persistence: SandboxPersistence,
    pub(crate) budget: Option<u64>,
    /// Connections of all conversations together.
    pub(crate) everybody: usize,
    pub(crate) mounts: Vec<HostMount>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            houses: USUAL,
            persistence: SandboxPersistence::Ephemeral,
            budget: None,
            everybody: usize::MAX,
            mounts: Vec::new(),
        }
    }
}

/// Tells a story in each kind of sandbox, with nothing left behind; says so aloud where one cannot
/// be had.
pub(crate) async fn story(test: &str, setup: Setup, tell: impl AsyncFn(&Lab)) {
    for &house in setup.houses {
        let Some(lab) = Lab::open(test, house, setup.clone()).await else {
            continue;
        };
        eprintln!("in {house:?}");
        tokio::time::timeout(PATIENCE * 2, tell(&lab))
            .await
            .expect("the story ends");
        lab.close().await;
    }
}

impl Lab {
    /// `origin.test` is everybody's, `hers.test` and the credential for it are Alice's.
    async fn open(test: &str, house: House, setup: Setup) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        let state = folder.path().join("state");
        for path in [&files, &state] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(files.join("hello"), "hello\n").unwrap();
        let origin = Origin::serve(&["origin.test", "hers.test"], files.clone()).await;
        let port = origin.at.port();

        let authority = CertificateAuthority::open(&state, SystemClock::shared()).unwrap();
        let installation = InstallationId::random();
        let backend = match house
            .open(&state, &installation, authority.certificate())
            .await
        {
            Ok(backend) => backend,
            Err(why) => {
                eprintln!("SKIP: {test} in {house:?}: {why}");
                return None;
            }
        };

        let record = Arc::new(Seen::default());
        let limits = EgressLimits {
            budget: setup.budget,
            everybody: setup.everybody,
            ..EgressLimits::default()
        };
        let bundle = CertificateBundle {
            path: "/tmp/.hermetic/ca.pem".to_owned(),
            pem: format!("{}{}", authority.certificate(), origin.pem),
        };
        let roots = TrustRoots::Only(vec![origin.certificate.clone()]);
        let proxy = Proxy::new(limits, Arc::new(Loopback), Arc::clone(&record) as _)
            .intercepting(Arc::new(authority), &roots)
            .unwrap();
        let gate = Egress::new(proxy, charter(port)).unwrap().trusting(bundle);
        let gate = Arc::new(gate);

        let store = Store::open(&state.join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let plan = SandboxPlan {
            backend: backend.kind(),
            system: house.system(),
            limits: hermetic_types::SandboxLimits::default(),
            mounts: setup.mounts,
            env: BTreeMap::new(),
            network: NetworkMode::Proxied { port: PROXY_PORT },
            persistence: setup.persistence,
            lifetime: Duration::from_secs(600),
            max_sandboxes: 8,
            max_sandboxes_per_user: 8,
            pool: 0,
        };
        let sandboxes = Sandboxes::new(
            plan.clone(),
            installation.clone(),
            [Arc::clone(&backend)],
            store.ledger(),
            SystemClock::shared(),
        )
        .with_egress(Arc::clone(&gate), SpendingBook::in_store(store.documents()));
        Some(Self {
            sandboxes,
            origin,
            record,
            files,
            gate,
            plan,
            installation,
            house,
            backend,
            store,
            knocks: TaskTracker::new(),
            _folder: folder,
        })
    }

    /// Where the origin is, by this name.
    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}/{path}", self.origin.at.port())
    }

    pub(crate) async fn lease(&self, who: &str) -> SandboxLease {
        self.sandboxes.lease(&key(who)).await.unwrap()
    }

    /// One command in this person's sandbox, its two outputs together.
    pub(crate) async fn run(&self, who: &str, text: &str) -> Said {
        let lease = self.lease(who).await;
        run(&lease, text).await
    }

    pub(crate) async fn python(&self, who: &str, probe: &str) -> Said {
        self.run(who, &format!("exec python3 - <<'PROBE'\n{probe}\nPROBE"))
            .await
    }

    /// The same home after the process died: nothing of the first one's memory.
    pub(crate) fn restart(&self) -> Sandboxes {
        Sandboxes::new(
            self.plan.clone(),
            self.installation.clone(),
            [Arc::clone(&self.backend)],
            self.store.ledger(),
            SystemClock::shared(),
        )
        .with_egress(
            self.gate_of_a_new_process(),
            SpendingBook::in_store(self.store.documents()),
        )
    }

    fn gate_of_a_new_process(&self) -> Arc<Egress> {
        let charter = charter(self.origin.at.port());
        let gate = Egress::new(self.gate.proxy().clone(), charter).unwrap();
        Arc::new(gate.trusting(self.gate.bundle().unwrap().clone()))
    }

    /// A link of its own to a sandbox, past the house.
    pub(crate) async fn apart(&self, id: &SandboxId) -> Sandbox {
        let link = self.backend.connect(id).await.unwrap();
        Sandbox::greet(id, self.backend.description(), link)
            .await
            .unwrap()
    }

    pub(crate) async fn stop(&self, lease: SandboxLease) {
        let id = lease.id().clone();
        self.backend.stop(&id).await.unwrap();
        // Behind the house's back: whoever comes before the link's end is noticed would get the old one.
        while lease.is_reachable() {
            tokio::task::yield_now().await;
        }
        drop(lease);
        self.store
            .ledger()
            .mark(&id, hermetic_store::LedgerState::Stopped)
            .await
            .unwrap();
    }

    /// Asks the proxy whether it is there, over a connection of this conversation that stays open.
    pub(crate) async fn knock(&self, who: &str) -> (DuplexStream, String) {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let (proxy, conversation) = (self.gate.proxy().clone(), self.gate.conversation(&key(who)));
        self.knocks.spawn(async move {
            proxy
                .handle(theirs, conversation, CancellationToken::new())
                .await;
        });
        ours.write_all(b"GET /health HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(ours.read_u8().await.unwrap());
        }
        (ours, String::from_utf8(head).unwrap())
    }

    async fn close(self) {
        self.knocks.close();
        self.knocks.wait().await;
        self.sandboxes.drain().await;
        for found in self.backend.list().await.unwrap() {
            self.backend.destroy(&found.id).await.unwrap();
        }
        assert!(self.backend.list().await.unwrap().is_empty());
    }
}

pub(crate) async fn run(sandbox: &Sandbox, text: &str) -> Said {
    try_to_run(sandbox, text).await.unwrap()
}

pub(crate) async fn try_to_run(sandbox: &Sandbox, text: &str) -> Result<Said, RunError> {
    let text = format!("exec 2>&1\n{text}");
    let mut command = Command::words(["bash".to_owned(), "-c".to_owned(), text]);
    command.timeout = Some(PATIENCE);
    let context = JudgementContext::new(
        BackendDescription::sealed(BackendKind::Native),
        "/workspace",
        "/root",
    );
    let Verdict::Run(cleared) = Policy::new(PolicyRules::default()).judge(command, &context) else {
        panic!("a sandbox without rules takes any command");
    };
    let never = CancellationToken::new();
    let finished = sandbox.run(cleared, MOST_OUTPUT, &never).await?;
    Ok(Said {
        code: finished.code(),
        out: String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned(),
    })
}

pub(crate) fn key(who: &str) -> ConversationKey {
    ConversationKey::new(format!("agent:main:telegram:dm:{who}"))
}

fn charter(port: u16) -> EgressRules {
    let alice: ConversationScope = "telegram:dm:alice".parse().unwrap();
    let credential = Credential::new(
        &format!("hers.test:{port}"),
        "authorization",
        "Bearer",
        Secret::new(SECRET),
        "hermetic-placeholder-api_token",
    );
    EgressRules {
        rules: RulesText::allowing([format!("origin.test:{port} in 127.0.0.0/8")]),
        more: vec![(
            alice.clone(),
            RulesText::allowing([format!("hers.test:{port} in 127.0.0.0/8")]),
        )],
        credentials: vec![CredentialGrant {
            credential: credential.unwrap(),
            scope: Some(alice),
            variable: Some("API_TOKEN".to_owned()),
            agent: None,
        }],
        ..EgressRules::default()
    }
}

/// Every name is this machine.
struct Loopback;

impl Resolver for Loopback {
    fn resolve<'a>(&'a self, _: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<EgressEntry>>);

impl Seen {
    pub(crate) fn entries(&self) -> Vec<EgressEntry> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn closed(&self) -> usize {
        let ended = |entry: &&EgressEntry| matches!(entry.verdict, EgressDecision::Closed { .. });
        self.entries().iter().filter(ended).count()
    }
}

impl EgressRecorder for Seen {
    fn write(&self, entry: &EgressEntry) {
        self.0.lock().unwrap().push(entry.clone());
    }
}
