//! A place for one story: an installation of its own, in a folder of its own.

use std::path::{Path, PathBuf};

use hermetic_sandbox::conformance::story;
pub(crate) use hermetic_sandbox::conformance::story::{STORY_TIMEOUT, begin, finish, sh, until};
use hermetic_sandbox::{Backend, Sandbox, SandboxSpec, SystemView, WardenLink};
use hermetic_singularity::{
    ApptainerRuntime, BuildListener, SingularityBackend, SingularityConfig,
};
use hermetic_types::InstallationId;

pub(crate) struct Lab {
    pub(crate) backend: SingularityBackend,
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
    if runtime().is_none() {
        return Some("neither apptainer nor singularity is installed".to_owned());
    }
    if !Path::new(&image()).is_dir() {
        return Some("no HERMETIC_TEST_ROOTFS; `cargo xtask test` provides one".to_owned());
    }
    None
}

pub(crate) fn runtime() -> Option<ApptainerRuntime> {
    ApptainerRuntime::find(&|name| std::env::var_os(name))
}

pub(crate) fn image() -> String {
    std::env::var("HERMETIC_TEST_ROOTFS").unwrap_or_default()
}

pub(crate) fn open(state: &Path, installation: &InstallationId) -> SingularityBackend {
    with(state, installation, |_| {})
}

pub(crate) fn with(
    state: &Path,
    installation: &InstallationId,
    change: impl FnOnce(&mut SingularityConfig),
) -> SingularityBackend {
    let mut config = SingularityConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        runtime: runtime(),
        image: image(),
        scratch: state.join("scratch"),
        cache: state.join("images"),
        tell: BuildListener::default(),
    };
    change(&mut config);
    SingularityBackend::open(config).unwrap()
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
    pub(crate) fn reopened(&self) -> SingularityBackend {
        open(self.folder.path(), &self.installation)
    }

    /// The same installation with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(&mut SingularityConfig)) -> SingularityBackend {
        with(self.folder.path(), &self.installation, change)
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        spec(&self.installation)
    }

    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Sandbox {
        greet(spec, self.backend.create(spec).await.unwrap()).await
    }

    /// Runs shell text in a fresh sandbox and returns what it said, both streams.
    pub(crate) async fn run(&self, text: &str) -> String {
        self.run_in(&self.spec(), text).await
    }

    pub(crate) async fn run_in(&self, spec: &SandboxSpec, text: &str) -> String {
        let sandbox = self.create(spec).await;
        let said = sh(&sandbox, text).await;
        self.backend.destroy(&spec.id).await.unwrap();
        said
    }

    pub(crate) async fn python(&self, text: &str) -> String {
        self.run(&format!("exec python3 - <<'END'\n{text}\nEND"))
            .await
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

pub(crate) async fn greet(spec: &SandboxSpec, link: WardenLink) -> Sandbox {
    Sandbox::greet(&spec.id, SingularityBackend::DESCRIPTION, link)
        .await
        .unwrap()
}

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    story::spec(installation, SystemView::Image(image()))
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

pub(crate) fn child_of(pid: i32) -> Option<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("children")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    })
}
