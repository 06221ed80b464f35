//! A place for one story: an installation of its own, in a folder of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_policy::Cleared;
use hermetic_sandbox::{
    Backend, Finished, Lifeline, Network, Persistence, Sandbox, Spec, SystemView,
};
use hermetic_singularity::{Config, Runtime, Singularity, Tell};
use hermetic_types::{BackendKind, Command, ConversationKey, InstallationId, Limits, SandboxId};
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const BOUND: usize = 1 << 20;

pub(crate) struct Lab {
    pub(crate) backend: Singularity,
    pub(crate) installation: InstallationId,
    pub(crate) folder: tempfile::TempDir,
}

/// A story is told where there is a runtime with the test image, and skipped aloud elsewhere.
macro_rules! stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &Lab) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if let Some(why) = crate::lab::skip() {
                return eprintln!("SKIP: {}: {why}", stringify!($name));
            }
            let lab = crate::lab::Lab::open();
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
    if runtime().is_none() {
        return Some("neither apptainer nor singularity is installed".to_owned());
    }
    if !Path::new(&image()).is_dir() {
        return Some("no HERMETIC_TEST_ROOTFS; `cargo xtask test` provides one".to_owned());
    }
    None
}

pub(crate) fn runtime() -> Option<Runtime> {
    Runtime::find(&|name| std::env::var_os(name))
}

pub(crate) fn image() -> String {
    std::env::var("HERMETIC_TEST_ROOTFS").unwrap_or_default()
}

pub(crate) fn open(state: &Path, installation: &InstallationId) -> Singularity {
    Singularity::open(Config {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        runtime: runtime(),
        image: image(),
        scratch: state.join("scratch"),
        cache: state.join("images"),
        tell: Tell::default(),
    })
    .unwrap()
}

impl Lab {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        Self {
            backend: open(folder.path(), &installation),
            installation,
            folder,
        }
    }

    /// The same installation after a restart of its gateway.
    pub(crate) fn reopened(&self) -> Singularity {
        open(self.folder.path(), &self.installation)
    }

    pub(crate) fn spec(&self) -> Spec {
        spec(&self.installation)
    }

    pub(crate) async fn create(&self, spec: &Spec) -> Sandbox {
        let link = self.backend.create(spec).await.unwrap();
        Sandbox::greet(&spec.id, BackendKind::Singularity, link)
            .await
            .unwrap()
    }

    /// Runs shell text in a fresh sandbox and returns what it said, both streams.
    pub(crate) async fn run(&self, text: &str) -> String {
        let spec = self.spec();
        let sandbox = self.create(&spec).await;
        let said = sh(&sandbox, text).await;
        self.backend.destroy(&spec.id).await.unwrap();
        said
    }

    /// Nothing of this installation is left, or the story was not clean.
    pub(crate) async fn close(self) {
        let left = self.backend.list().await.unwrap();
        for found in &left {
            self.backend.destroy(&found.id).await.unwrap();
        }
        assert_eq!(left, [], "a story left a sandbox");
        let installation = self.installation.to_string();
        until("every process is gone", async || {
            processes_of(&installation).is_empty()
        })
        .await;
        assert_eq!(leftovers(self.folder.path()), Vec::<PathBuf>::new());
    }
}

pub(crate) fn spec(installation: &InstallationId) -> Spec {
    Spec {
        installation: installation.clone(),
        conversation: ConversationKey::new("story"),
        id: SandboxId::random(),
        system: SystemView::Image(image()),
        limits: Limits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: Network::Closed,
        persistence: Persistence::Ephemeral,
        lifeline: Lifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
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

pub(crate) async fn sh(sandbox: &Sandbox, text: &str) -> String {
    let finished = finish(sandbox, &format!("exec 2>&1\n{text}")).await;
    String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned()
}

/// Files of sandboxes and entries of instances; the empty folders they lie in may stay.
pub(crate) fn leftovers(state: &Path) -> Vec<PathBuf> {
    let places = [
        "scratch",
        "singularity/sandboxes",
        "singularity/list/instances",
    ];
    let mut found = Vec::new();
    let mut look: Vec<PathBuf> = places.iter().map(|place| state.join(place)).collect();
    while let Some(folder) = look.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && folder.starts_with(state.join(places[2])) {
                look.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.retain(|path| !path.is_dir() || !path.starts_with(state.join(places[2])));
    found
}

/// Processes of this host that carry the text among their words or variables.
pub(crate) fn processes_of(text: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid: &i32| pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
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
