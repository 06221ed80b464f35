//! A place for one story: a Modal of its own, and an installation that uses it.

use std::path::Path;
use std::sync::Arc;

use hermetic_modal::{ControlAddress, ModalBackend, ModalConfig, ModalCredentials, OutboundAccess};
use hermetic_sandbox::conformance::story;
pub(crate) use hermetic_sandbox::conformance::story::{STORY_TIMEOUT, begin, finish, sh, until};
use hermetic_sandbox::{Backend, Sandbox, SandboxPersistence, SandboxSpec, SystemView};
use hermetic_types::{InstallationId, Secret, SystemClock};
use tempfile::TempDir;

use crate::service::{self, Service, TOKEN_ID, TOKEN_SECRET};

pub(crate) const IMAGE: &str = "debian:12";

pub(crate) struct Lab {
    pub(crate) service: Service,
    pub(crate) modal: ModalBackend,
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
            tokio::time::timeout(crate::lab::STORY_TIMEOUT * 2, async { $body })
                .await
                .expect("the story ends");
            lab.close().await;
        })*
    };
}
pub(crate) use stories;

/// Why stories cannot be told here.
pub(crate) async fn skip() -> Option<String> {
    service::lacking().await
}

pub(crate) fn open(
    service: &Service,
    installation: &InstallationId,
    home: &TempDir,
    change: impl FnOnce(&mut ModalConfig),
) -> ModalBackend {
    at(&service.url, installation, home.path(), change)
}

pub(crate) fn at(
    url: &str,
    installation: &InstallationId,
    home: &Path,
    change: impl FnOnce(&mut ModalConfig),
) -> ModalBackend {
    let mut config = ModalConfig {
        address: ControlAddress::parse(url).unwrap(),
        credentials: ModalCredentials {
            token_id: Secret::new(TOKEN_ID),
            token_secret: Secret::new(TOKEN_SECRET),
            server_url: None,
            environment: None,
        },
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        app: "hermetic".to_owned(),
        image: IMAGE.to_owned(),
        snapshots: home.join("modal_snapshots.json"),
        outbound: OutboundAccess::Nothing,
        clock: SystemClock::shared(),
    };
    change(&mut config);
    ModalBackend::new(config)
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
    pub(crate) fn with(&self, change: impl FnOnce(&mut ModalConfig)) -> ModalBackend {
        open(&self.service, &self.installation, &self.home, change)
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        spec(&self.installation)
    }

    pub(crate) fn kept(&self) -> SandboxSpec {
        SandboxSpec {
            persistence: SandboxPersistence::Kept,
            ..self.spec()
        }
    }

    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Sandbox {
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

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    story::spec(installation, SystemView::Image(IMAGE.to_owned()))
}

pub(crate) async fn greet(spec: &SandboxSpec, link: hermetic_sandbox::WardenLink) -> Sandbox {
    Sandbox::greet(&spec.id, ModalBackend::DESCRIPTION, link)
        .await
        .unwrap()
}

/// With the way back that a session gives it.
pub(crate) fn distant(modal: &ModalBackend, sandbox: Sandbox) -> Sandbox {
    let backend: Arc<dyn Backend> = Arc::new(modal.clone());
    sandbox.with_way_back(&backend)
}
