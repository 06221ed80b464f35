//! A place for one story: a Modal of its own, and an installation that uses it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_modal::{Address, Config, Credentials, Modal, Outbound};
use hermetic_policy::Cleared;
use hermetic_sandbox::{
    Backend, Finished, Lifeline, Network, Persistence, Sandbox, Spec, SystemView,
};
use hermetic_types::{
    BackendKind, Command, ConversationKey, InstallationId, Limits, SandboxId, Secret,
};
use hermetic_warden::client::{Event, Running};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::service::{Service, TOKEN_ID, TOKEN_SECRET};

/// Long enough for a loaded machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const IMAGE: &str = "debian:12";
const BOUND: usize = 1 << 20;

pub(crate) struct Lab {
    pub(crate) service: Service,
    pub(crate) modal: Modal,
    pub(crate) installation: InstallationId,
    pub(crate) home: TempDir,
}

/// A story is told where a sandbox of the test's own can be built, and skipped aloud elsewhere.
macro_rules! stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &Lab) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if let Some(why) = crate::lab::skip().await {
                return eprintln!("SKIP: {}: {why}", stringify!($name));
            }
            let lab = crate::lab::Lab::open().await;
            let $lab = &lab;
            tokio::time::timeout(crate::lab::PATIENCE * 2, async { $body })
                .await
                .expect("the story ends");
            lab.close().await;
        })*
    };
}
pub(crate) use stories;

/// Why stories cannot be told here.
pub(crate) async fn skip() -> Option<String> {
    let tried = tokio::process::Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--net",
        ])
        .args(["nsenter", "--version"])
        .output()
        .await;
    match tried {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

pub(crate) fn open(
    service: &Service,
    installation: &InstallationId,
    home: &TempDir,
    change: impl FnOnce(&mut Config),
) -> Modal {
    at(&service.url, installation, home, change)
}

pub(crate) fn at(
    url: &str,
    installation: &InstallationId,
    home: &TempDir,
    change: impl FnOnce(&mut Config),
) -> Modal {
    let mut config = Config {
        address: Address::parse(url).unwrap(),
        credentials: Credentials {
            token_id: Secret::new(TOKEN_ID),
            token_secret: Secret::new(TOKEN_SECRET),
            server_url: None,
            environment: None,
        },
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        app: "hermetic".to_owned(),
        image: IMAGE.to_owned(),
        snapshots: home.path().join("modal_snapshots.json"),
        outbound: Outbound::Nothing,
    };
    change(&mut config);
    Modal::new(config)
}

impl Lab {
    pub(crate) async fn open() -> Self {
        let service = Service::open().await;
        let installation = InstallationId::random();
        let home = tempfile::tempdir().unwrap();
        Self {
            modal: open(&service, &installation, &home, |_| {}),
            service,
            installation,
            home,
        }
    }

    /// The same installation after a restart, or with other options.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Config)) -> Modal {
        open(&self.service, &self.installation, &self.home, change)
    }

    pub(crate) fn spec(&self) -> Spec {
        spec(&self.installation)
    }

    pub(crate) fn kept(&self) -> Spec {
        Spec {
            persistence: Persistence::Kept,
            ..self.spec()
        }
    }

    pub(crate) async fn create(&self, spec: &Spec) -> Sandbox {
        let link = self.modal.create(spec).await.unwrap();
        greet(spec, link).await
    }

    /// What `modal_snapshots.json` says.
    pub(crate) fn snapshots(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.home.path().join("modal_snapshots.json"));
        serde_json::from_str(&text.unwrap_or_else(|_| "{}".to_owned())).unwrap()
    }

    /// Nothing of this installation is left, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.modal.list().await.unwrap();
        let running = self.service.plane.cells().len();
        self.service.plane.close().await;
        assert_eq!((left, running), (Vec::new(), 0), "a story left a sandbox");
        assert!(
            self.service.plane.faults.are_over(),
            "a fault never happened"
        );
    }
}

pub(crate) fn spec(installation: &InstallationId) -> Spec {
    Spec {
        installation: installation.clone(),
        conversation: ConversationKey::new("agent:main:telegram:dm:4711"),
        id: SandboxId::random(),
        system: SystemView::Image(IMAGE.to_owned()),
        limits: Limits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: Network::Closed,
        persistence: Persistence::Ephemeral,
        lifeline: Lifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
}

pub(crate) async fn greet(spec: &Spec, link: hermetic_sandbox::Link) -> Sandbox {
    Sandbox::greet(&spec.id, BackendKind::Modal, link)
        .await
        .unwrap()
}

pub(crate) async fn finish(sandbox: &Sandbox, text: &str) -> Finished {
    let mut command = Command::script(text);
    command.timeout = Some(PATIENCE);
    sandbox
        .run(
            Cleared::typed_by_operator(command),
            BOUND,
            &CancellationToken::new(),
        )
        .await
        .unwrap()
}

/// Starts what goes on; it has said a first word.
pub(crate) async fn begin(sandbox: &Sandbox, text: &str) -> Running {
    let command = Cleared::typed_by_operator(Command::script(text));
    let mut running = sandbox.start(command).await.unwrap();
    while !matches!(running.next().await, Ok(Some(Event::Out(_))) | Err(_)) {}
    running
}

pub(crate) async fn sh(sandbox: &Sandbox, text: &str) -> String {
    let finished = finish(sandbox, &format!("exec 2>&1\n{text}")).await;
    String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned()
}

/// With the way back that a session gives it.
pub(crate) fn distant(modal: &Modal, sandbox: Sandbox) -> Sandbox {
    let backend: Arc<dyn Backend> = Arc::new(modal.clone());
    sandbox.with_way_back(&backend)
}

/// Waits for what will come, and fails when it does not.
pub(crate) async fn until(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"));
}
