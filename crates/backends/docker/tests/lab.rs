//! A place for one story: an installation of its own on the engine of `DOCKER_HOST`.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_docker::{ContainerOptions, DockerBackend, DockerConfig, EngineAddress, PullListener};
use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{
    Backend, FinishedCommand, NetworkMode, Sandbox, SandboxLifeline, SandboxPersistence,
    SandboxSpec, SystemView,
};
use hermetic_types::{
    Command, ConversationKey, InstallationId, SandboxId, SandboxLimits, SystemClock,
};
use hermetic_warden::client::{RunEvent, RunningCommand};
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const BOUND: usize = 1 << 20;

pub(crate) struct Lab {
    pub(crate) docker: DockerBackend,
    pub(crate) installation: InstallationId,
}

/// A story is told where there is an engine with the test image, and skipped aloud elsewhere.
macro_rules! stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &Lab) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if let Some(why) = crate::lab::skip().await {
                return eprintln!("SKIP: {}: {why}", stringify!($name));
            }
            let lab = crate::lab::Lab::open(|_| {});
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
    if std::env::var_os("HERMETIC_TEST_IMAGE").is_none() {
        return Some("no HERMETIC_TEST_IMAGE; `cargo xtask test` provides one".to_owned());
    }
    let reached = open(&InstallationId::random(), |_| {}).list().await;
    reached.err().map(|error| error.to_string())
}

/// Set where the engine keeps no limits, and that is taken as it is.
pub(crate) const WITHOUT_LIMITS: &str = "HERMETIC_TEST_WITHOUT_LIMITS";

pub(crate) fn keeps_limits() -> bool {
    std::env::var_os(WITHOUT_LIMITS).is_none()
}

/// Whether the engine of these stories is not root, which is seen by who tells them.
pub(crate) fn is_rootless() -> bool {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = host.strip_prefix("unix://").unwrap_or_default();
    let owner =
        std::fs::metadata(socket).map(|socket| std::os::unix::fs::MetadataExt::uid(&socket));
    owner.is_ok_and(|owner| owner != 0)
}

pub(crate) fn image() -> String {
    std::env::var("HERMETIC_TEST_IMAGE").unwrap_or_default()
}

pub(crate) fn open(
    installation: &InstallationId,
    change: impl FnOnce(&mut DockerConfig),
) -> DockerBackend {
    let mut config = DockerConfig {
        address: EngineAddress::find(&|name| std::env::var(name).ok()).unwrap(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: None,
        image: image(),
        own: Vec::new(),
        accepted: if keeps_limits() {
            Vec::new()
        } else {
            vec!["limits".to_owned()]
        },
        options: ContainerOptions::default(),
        client_folder: None,
        tell: PullListener::default(),
        clock: SystemClock::shared(),
    };
    change(&mut config);
    DockerBackend::open(config).unwrap()
}

impl Lab {
    pub(crate) fn open(change: impl FnOnce(&mut DockerConfig)) -> Self {
        let installation = InstallationId::random();
        Self {
            docker: open(&installation, change),
            installation,
        }
    }

    /// The same installation with other options.
    pub(crate) fn with(&self, change: impl FnOnce(&mut DockerConfig)) -> Self {
        Self {
            docker: open(&self.installation, change),
            installation: self.installation.clone(),
        }
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        spec(&self.installation)
    }

    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Sandbox {
        let link = self.docker.create(spec).await.unwrap();
        greet(spec, link).await
    }

    /// Runs shell text in a fresh sandbox and returns what it said, both streams.
    pub(crate) async fn run(&self, text: &str) -> String {
        self.run_in(&self.spec(), text).await
    }

    pub(crate) async fn run_in(&self, spec: &SandboxSpec, text: &str) -> String {
        let sandbox = self.create(spec).await;
        let said = sh(&sandbox, text).await;
        self.docker.destroy(&spec.id).await.unwrap();
        said
    }

    /// Nothing of this installation is left, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.docker.list().await.unwrap();
        for found in &left {
            self.docker.destroy(&found.id).await.unwrap();
        }
        assert_eq!(left, [], "a story left a container");
    }
}

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    SandboxSpec {
        installation: installation.clone(),
        conversation: ConversationKey::new("story"),
        id: SandboxId::random(),
        system: SystemView::Image(image()),
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
}

pub(crate) async fn greet(spec: &SandboxSpec, link: hermetic_sandbox::WardenLink) -> Sandbox {
    Sandbox::greet(&spec.id, DockerBackend::DESCRIPTION, link)
        .await
        .unwrap()
}

pub(crate) async fn finish(sandbox: &Sandbox, text: &str) -> FinishedCommand {
    let mut command = Command::script(text);
    command.timeout = Some(PATIENCE);
    sandbox
        .run(cleared(command), BOUND, &CancellationToken::new())
        .await
        .unwrap()
}

/// Starts what goes on; it has said a first word.
pub(crate) async fn begin(sandbox: &Sandbox, text: &str) -> RunningCommand {
    let command = cleared(Command::script(text));
    let mut running = sandbox.start(command).await.unwrap();
    while !matches!(running.next().await, Ok(Some(RunEvent::Out(_))) | Err(_)) {}
    running
}

pub(crate) async fn sh(sandbox: &Sandbox, text: &str) -> String {
    let finished = finish(sandbox, &format!("exec 2>&1\n{text}")).await;
    String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned()
}

/// Something on the engine that is not a sandbox, made by docker's own client.
pub(crate) struct Thing {
    pub(crate) name: String,
    kind: &'static str,
}

impl Thing {
    pub(crate) async fn remove(self) {
        let force = ["-f"].iter().filter(|_| self.kind == "container").copied();
        let words: Vec<&str> = [self.kind, "rm"].into_iter().chain(force).collect();
        docker(&words, &[&self.name]).await;
    }

    pub(crate) async fn is_still_there(&self) {
        let state = docker(&["inspect", "-f", "{{.State.Status}}"], &[&self.name]).await;
        assert_eq!(state.trim(), "running");
    }
}

/// Runs docker's own client, which has to be content.
pub(crate) async fn docker(words: &[&str], more: &[&str]) -> String {
    let output = tokio::process::Command::new("docker")
        .args(words)
        .args(more)
        // The other builder is a program that may not be there.
        .env("DOCKER_BUILDKIT", "0")
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {words:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A running container that is nobody's sandbox.
pub(crate) async fn stranger(name: &str) -> Thing {
    let words = ["run", "-d", "--network", "none", "--name", name];
    // Podman's own are above what some hosts allow.
    let limits = [
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
    ];
    docker(
        &[words.as_slice(), &limits].concat(),
        &[&image(), "sleep", "600"],
    )
    .await;
    Thing {
        name: name.to_owned(),
        kind: "container",
    }
}

/// Of an authority by this name.
pub(crate) fn certificate(name: &str) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem()
}

/// Whether the engine is Podman's.
pub(crate) async fn is_podman() -> bool {
    let name = "{{(index .Server.Components 0).Name}}";
    docker(&["version", "--format"], &[name])
        .await
        .contains("Podman")
}

/// The test image with lines of a Dockerfile on top, by way of a commit: no builder is needed.
pub(crate) async fn derive(lines: &[&str]) -> Thing {
    let name = format!("hermetic-test:{}", SandboxId::random());
    if is_podman().await {
        // It does not take a commit from docker's client, and has a builder.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Dockerfile");
        std::fs::write(&file, format!("FROM {}\n{}\n", image(), lines.join("\n"))).unwrap();
        let file = file.to_str().unwrap();
        let folder = folder.path().to_str().unwrap();
        docker(&["build", "-q", "-t", &name, "-f", file], &[folder]).await;
        return Thing {
            name,
            kind: "image",
        };
    }
    let made = docker(&["create"], &[&image()]).await;
    let changes = lines.iter().flat_map(|line| ["--change", line]);
    let words: Vec<&str> = ["commit"].into_iter().chain(changes).collect();
    docker(&words, &[made.trim(), &name]).await;
    docker(&["rm"], &[made.trim()]).await;
    Thing {
        name,
        kind: "image",
    }
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
