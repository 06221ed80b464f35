//! A place for one story: a cluster of its own, and an installation that uses it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermetic_kubernetes::{
    ClusterAccess, ClusterSource, KubernetesBackend, KubernetesConfig, KubernetesTimeouts,
    PodOptions,
};
use hermetic_sandbox::conformance::story;
pub(crate) use hermetic_sandbox::conformance::story::{STORY_TIMEOUT, begin, finish, sh, until};
use hermetic_sandbox::{Backend, Sandbox, SandboxPersistence, SandboxSpec, SystemView};
use hermetic_types::InstallationId;
use tempfile::TempDir;

use crate::server::{self, NAMESPACE, Server, TOKEN};

pub(crate) const IMAGE: &str = "debian:12";

pub(crate) struct Lab {
    pub(crate) server: Server,
    pub(crate) kube: KubernetesBackend,
    pub(crate) installation: InstallationId,
    pub(crate) home: TempDir,
}

/// A story is told where a pod of the test's own can be built, and skipped aloud elsewhere.
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
    server::lacking().await
}

/// A kubeconfig as an operator has one.
pub(crate) fn kubeconfig(url: &str, home: &Path) -> std::path::PathBuf {
    let path = home.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         contexts: [{{name: test, context: {{cluster: c, user: u, namespace: {NAMESPACE}}}}}]\n\
         clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n\
         users: [{{name: u, user: {{token: {TOKEN}}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn open(
    url: &str,
    installation: &InstallationId,
    home: &Path,
    change: impl FnOnce(&mut KubernetesConfig),
) -> KubernetesBackend {
    let source = ClusterSource {
        kubeconfig: Some(kubeconfig(url, home)),
        ..ClusterSource::default()
    };
    at(&source, installation, change)
}

pub(crate) fn at(
    source: &ClusterSource,
    installation: &InstallationId,
    change: impl FnOnce(&mut KubernetesConfig),
) -> KubernetesBackend {
    let mut config = KubernetesConfig {
        access: Arc::new(ClusterAccess::find(source).unwrap()),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        image: IMAGE.to_owned(),
        options: PodOptions::default(),
        timeouts: KubernetesTimeouts {
            start: Duration::from_secs(60),
            settle: Duration::from_secs(2),
            ..KubernetesTimeouts::default()
        },
    };
    change(&mut config);
    KubernetesBackend::open(config)
}

impl Lab {
    pub(crate) async fn open() -> Self {
        let server = Server::open().await;
        let installation = InstallationId::random();
        let home = tempfile::tempdir().unwrap();
        Self {
            kube: open(&server.url, &installation, home.path(), |_| {}),
            server,
            installation,
            home,
        }
    }

    /// The same installation after a restart, or with other options.
    pub(crate) fn with(&self, change: impl FnOnce(&mut KubernetesConfig)) -> KubernetesBackend {
        open(
            &self.server.url,
            &self.installation,
            self.home.path(),
            change,
        )
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
        let link = self.kube.create(spec).await.unwrap();
        greet(spec, link).await
    }

    /// Nothing of this installation is left, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.kube.list().await.unwrap();
        let pods = self.server.objects("pods").len() + self.server.objects("jobs").len();
        let faults = std::mem::take(&mut self.server.habits().faults);
        self.server.end().await;
        assert_eq!((left, pods), (Vec::new(), 0), "a story left a sandbox");
        assert!(faults.is_empty(), "a fault never happened: {faults:?}");
    }
}

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    story::spec(installation, SystemView::Image(IMAGE.to_owned()))
}

pub(crate) async fn greet(spec: &SandboxSpec, link: hermetic_sandbox::WardenLink) -> Sandbox {
    Sandbox::greet(&spec.id, KubernetesBackend::DESCRIPTION, link)
        .await
        .unwrap()
}

/// With the way back that a session gives it.
pub(crate) fn distant(kube: &KubernetesBackend, sandbox: Sandbox) -> Sandbox {
    let backend: Arc<dyn Backend> = Arc::new(kube.clone());
    sandbox.with_way_back(&backend)
}
