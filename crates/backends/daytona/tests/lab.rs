//! A backend, a service for it, and what the stories have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_daytona::{Config, Daytona, DiskWish, Patience};
use hermetic_policy::Cleared;
use hermetic_sandbox::{
    Backend, Finished, Lifeline, Link, Network, Persistence, Sandbox, Spec, SystemView,
};
use hermetic_types::{
    BackendKind, Command, ConversationKey, InstallationId, Limits, SandboxId, Secret,
};
use hermetic_warden::client::{Event, Running};
use tokio_util::sync::CancellationToken;

use crate::server::{self, Server};

/// Long enough for a loaded machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const IMAGE: &str = "debian:12";
const BOUND: usize = 1 << 20;

pub(crate) struct Lab {
    pub(crate) server: Server,
    pub(crate) daytona: Daytona,
    pub(crate) installation: InstallationId,
}

/// A story is told where sandboxes of the test service can be made, and skipped aloud elsewhere.
macro_rules! stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &Lab) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if let Some(why) = crate::lab::skip() {
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
pub(crate) fn skip() -> Option<String> {
    server::lacking()
}

pub(crate) fn open(
    server: &Server,
    installation: &InstallationId,
    change: impl FnOnce(&mut Config),
) -> Daytona {
    let mut config = Config {
        key: Secret::new(server::KEY),
        url: server.url(),
        organisation: None,
        target: Some("eu".to_owned()),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        disk: DiskWish::Default,
        patience: Patience::default(),
    };
    change(&mut config);
    Daytona::open(config).unwrap()
}

impl Lab {
    pub(crate) async fn open() -> Self {
        let server = Server::start().await;
        let installation = InstallationId::random();
        Self {
            daytona: open(&server, &installation, |_| {}),
            server,
            installation,
        }
    }

    /// The same installation with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Config)) -> Daytona {
        open(&self.server, &self.installation, change)
    }

    pub(crate) fn spec(&self) -> Spec {
        Spec {
            installation: self.installation.clone(),
            conversation: ConversationKey::new("telegram:story"),
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

    pub(crate) fn kept(&self) -> Spec {
        Spec {
            persistence: Persistence::Kept,
            ..self.spec()
        }
    }

    pub(crate) async fn create(&self, spec: &Spec) -> Sandbox {
        greet(spec, self.daytona.create(spec).await.unwrap()).await
    }

    /// Nothing is left at the provider, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.server.names();
        self.server.end().await;
        assert_eq!(left, Vec::<String>::new(), "a story left a sandbox");
    }
}

pub(crate) async fn greet(spec: &Spec, link: Link) -> Sandbox {
    Sandbox::greet(&spec.id, BackendKind::Daytona, link)
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
