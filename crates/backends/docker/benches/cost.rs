//! What a container costs, next to docker's own client in the same run.
//!
//! `cargo bench -p hermetic-docker --bench cost` prints a table; nothing is asserted, because a
//! busy machine is no failure. It needs an engine and an image: `cargo xtask docker -- cargo bench
//! -p hermetic-docker`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermetic_docker::{ContainerOptions, DockerBackend, DockerConfig, EngineAddress, PullListener};
use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{
    Backend, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_session::{SandboxPlan, Sandboxes};
use hermetic_store::{RowOwner, Store};
use hermetic_types::{
    BackendKind, ConversationKey, InstallationId, SandboxId, SandboxLimits, SystemClock,
};
use hermetic_warden::client::{RunEvent, RunningCommand, Warden};
use hermetic_warden::protocol::RunRequest;
use tokio_util::sync::CancellationToken;

const COMMANDS: usize = 40;
const CREATIONS: usize = 15;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let Ok(image) = std::env::var("HERMETIC_TEST_IMAGE") else {
        return println!("no HERMETIC_TEST_IMAGE: `cargo xtask docker` provides one");
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bench = Bench::open(image);
        println!("{:44} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
        bench.commands().await;
        bench.creations().await;
        bench.pool().await;
    });
}

struct Bench {
    docker: DockerBackend,
    installation: InstallationId,
    image: String,
}

impl Bench {
    fn open(image: String) -> Self {
        let installation = InstallationId::random();
        let docker = DockerBackend::open(DockerConfig {
            address: EngineAddress::find(&|name| std::env::var(name).ok()).unwrap(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            authority: None,
            image: image.clone(),
            own: Vec::new(),
            accepted: Vec::new(),
            options: ContainerOptions::default(),
            client_folder: None,
            tell: PullListener::default(),
            clock: SystemClock::shared(),
        });
        Self {
            docker: docker.unwrap(),
            installation,
            image,
        }
    }

    /// Turn by turn, so that whatever else the machine does hits both.
    async fn commands(&self) {
        let spec = self.spec();
        let warden = self.greet(&spec).await;
        let name = format!("hermetic-{}", spec.id);
        let (mut ours, mut theirs) = (vec![], vec![]);
        for round in 0..COMMANDS + 3 {
            let begun = Instant::now();
            let own = first_output(warden.run(hi()).await.unwrap(), begun).await;
            let other = first_byte(&["exec", &name, "echo", "hi"]);
            if round >= 3 {
                ours.push(own);
                theirs.push(other);
            }
        }
        self.docker.destroy(&spec.id).await.unwrap();
        row("docker exec echo", &mut theirs);
        row("ours: echo in a living sandbox", &mut ours);
        println!("ours / docker exec: 1/{:.0}", 1.0 / ratio(&ours, &theirs));
    }

    async fn creations(&self) {
        let run = [
            "run",
            "--rm",
            "--network",
            "none",
            &self.image,
            "echo",
            "hi",
        ];
        let (mut ours, mut theirs) = (vec![], vec![]);
        for round in 0..CREATIONS + 1 {
            let begun = Instant::now();
            let spec = self.spec();
            let warden = self.greet(&spec).await;
            let own = first_output(warden.run(hi()).await.unwrap(), begun).await;
            self.docker.destroy(&spec.id).await.unwrap();
            let other = first_byte(&run);
            if round >= 1 {
                ours.push(own);
                theirs.push(other);
            }
        }
        row("docker run --rm --network none, first output", &mut theirs);
        row("ours: create, greeted, first output", &mut ours);
        println!("ours / docker run: {:.2}", ratio(&ours, &theirs));
    }

    /// The first command of a conversation that finds a sandbox waiting, and its second.
    async fn pool(&self) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let backend: Arc<dyn Backend> = Arc::new(self.docker.clone());
        let installation = self.installation.clone();
        let sandboxes = Sandboxes::new(
            self.plan(),
            installation,
            [backend],
            store.ledger(),
            SystemClock::shared(),
        );
        let stop = CancellationToken::new();
        let reaper = tokio::spawn({
            let (sandboxes, stop) = (sandboxes.clone(), stop.clone());
            async move { sandboxes.reap(stop).await }
        });
        let (mut firsts, mut seconds) = (vec![], vec![]);
        for round in 0..CREATIONS {
            let is_waiting = |entry: &hermetic_store::LedgerEntry| {
                entry.conversation.as_str().starts_with("pool:")
                    && entry.state == hermetic_store::LedgerState::Running
            };
            while !store
                .ledger()
                .entries(RowOwner::AnyGateway)
                .await
                .unwrap()
                .iter()
                .any(is_waiting)
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let conversation = ConversationKey::new(format!("bench:{round}"));
            let begun = Instant::now();
            let lease = sandboxes.lease(&conversation).await.unwrap();
            firsts.push(first_output(lease.start(cleared(hello())).await.unwrap(), begun).await);
            drop(lease);
            let begun = Instant::now();
            let lease = sandboxes.lease(&conversation).await.unwrap();
            seconds.push(first_output(lease.start(cleared(hello())).await.unwrap(), begun).await);
            drop(lease);
            sandboxes.reset(&conversation).await.unwrap();
        }
        stop.cancel();
        reaper.await.unwrap();
        sandboxes.drain().await;
        row("a new conversation's first command, pool", &mut firsts);
        row("its second", &mut seconds);
        println!("first / second: {:.2}", ratio(&firsts, &seconds));
        assert!(self.docker.list().await.unwrap().is_empty());
    }

    async fn greet(&self, spec: &SandboxSpec) -> Warden {
        let link = self.docker.create(spec).await.unwrap();
        Warden::greet(link.into_stream(), PATIENCE).await.unwrap()
    }

    fn plan(&self) -> SandboxPlan {
        SandboxPlan {
            backend: BackendKind::Docker,
            system: SystemView::Image(self.image.clone()),
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            lifetime: Duration::from_secs(600),
            max_sandboxes: 10,
            max_sandboxes_per_user: 10,
            pool: 2,
        }
    }

    fn spec(&self) -> SandboxSpec {
        SandboxSpec {
            installation: self.installation.clone(),
            conversation: ConversationKey::new("bench"),
            id: SandboxId::random(),
            system: SystemView::Image(self.image.clone()),
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            lifeline: SandboxLifeline::Ledger,
            lifetime: Duration::from_secs(600),
        }
    }
}

fn hi() -> RunRequest {
    RunRequest::new(["/bin/echo", "hi"])
}

fn hello() -> hermetic_types::Command {
    hermetic_types::Command::words(["/bin/echo", "hi"])
}

/// Until the first output is here; the end is waited for, and not counted.
async fn first_output(mut running: RunningCommand, begun: Instant) -> Duration {
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    let seen = begun.elapsed();
    while running.next().await.unwrap().is_some() {}
    seen
}

/// Until docker's own client has the first byte; its end is waited for, and not counted.
fn first_byte(words: &[&str]) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new("docker")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut byte)
        .unwrap();
    let seen = begun.elapsed();
    child.wait().unwrap();
    seen
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{name:44} {:8.2} {:8.2} {:8.2}", at(0), at(50), at(95));
}

/// Of medians; both are sorted by now.
fn ratio(ours: &[Duration], theirs: &[Duration]) -> f64 {
    let middle = |times: &[Duration]| times[(times.len() - 1) / 2].as_secs_f64();
    middle(ours) / middle(theirs)
}
