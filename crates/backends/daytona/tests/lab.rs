//! A backend, a service for it, and what the stories have in common.

use hermetic_daytona::{DaytonaBackend, DaytonaConfig, DaytonaTimeouts, DiskWish};
use hermetic_sandbox::conformance::story;
pub(crate) use hermetic_sandbox::conformance::story::{STORY_TIMEOUT, begin, sh, until};
use hermetic_sandbox::{Backend, Sandbox, SandboxPersistence, SandboxSpec, SystemView, WardenLink};
use hermetic_types::{InstallationId, Secret};

use crate::server::{self, Server};

pub(crate) const IMAGE: &str = "debian:12";

pub(crate) struct Lab {
    pub(crate) server: Server,
    pub(crate) daytona: DaytonaBackend,
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
            tokio::time::timeout(crate::lab::STORY_TIMEOUT * 2, async { $body })
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
    change: impl FnOnce(&mut DaytonaConfig),
) -> DaytonaBackend {
    at(server.url(), installation, change)
}

pub(crate) fn at(
    url: String,
    installation: &InstallationId,
    change: impl FnOnce(&mut DaytonaConfig),
) -> DaytonaBackend {
    let mut config = DaytonaConfig {
        key: Secret::new(server::KEY),
        url,
        organisation: None,
        target: Some("eu".to_owned()),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        disk: DiskWish::Default,
        patience: DaytonaTimeouts::default(),
    };
    change(&mut config);
    DaytonaBackend::open(config).unwrap()
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
    pub(crate) fn with(&self, change: impl FnOnce(&mut DaytonaConfig)) -> DaytonaBackend {
        open(&self.server, &self.installation, change)
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
        greet(spec, self.daytona.create(spec).await.unwrap()).await
    }

    /// Nothing is left at the provider, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.server.names();
        self.server.end().await;
        assert_eq!(left, Vec::<String>::new(), "a story left a sandbox");
    }
}

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    story::spec(installation, SystemView::Image(IMAGE.to_owned()))
}

pub(crate) async fn greet(spec: &SandboxSpec, link: WardenLink) -> Sandbox {
    Sandbox::greet(&spec.id, DaytonaBackend::DESCRIPTION, link)
        .await
        .unwrap()
}
