//! A place for one test: an installation of its own, sandboxes in it, and a look at what is left.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hermetic_native::{EarlyStart, NativeBackend, NativeConfig};
use hermetic_sandbox::{
    Backend, BackendError, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec,
    SystemView, WardenLink,
};
use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};
use hermetic_warden::client::{RunEvent, RunningCommand, Warden};
use hermetic_warden::protocol::{ExitState, OutputStreams as Streams, RunRequest};
use rustix::process::getuid;

/// Nobody's: not the user 1000 of the machine the tests run on.
const PLAIN: u32 = 61_234;
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    pub(crate) native: NativeBackend,
    pub(crate) installation: InstallationId,
    pub(crate) state: tempfile::TempDir,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// Each story is told twice, by root and by a plain user.
macro_rules! stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &Lab) $body:block)*) => {
        $($(#[$meta])* async fn $name($lab: &crate::lab::Lab) $body)*
        mod as_root {
            $(#[test] fn $name() { crate::lab::as_root(stringify!($name), async |lab| super::$name(lab).await) })*
        }
        mod as_user {
            $(#[test] fn $name() {
                let path = concat!(module_path!(), "::", stringify!($name));
                crate::lab::as_user(path, async |lab| super::$name(lab).await)
            })*
        }
    };
}
pub(crate) use stories;

pub(crate) fn as_root(name: &str, story: impl AsyncFnOnce(&Lab)) {
    if getuid().is_root() {
        tell(story);
    } else {
        eprintln!("SKIP: {name}: needs root");
    }
}

pub(crate) fn as_user(path: &str, story: impl AsyncFnOnce(&Lab)) {
    if !getuid().is_root() {
        return tell(story);
    }
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(PLAIN), Some(PLAIN)).unwrap();
    let (_, name) = path.split_once("::").unwrap();
    let told = Command::new("setpriv")
        .args([
            &format!("--reuid={PLAIN}"),
            &format!("--regid={PLAIN}"),
            "--clear-groups",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output();
    match told {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "as a plain user:\n{text}\n{errors}"
            );
            assert!(text.contains("1 passed"), "{text}");
        }
        Err(error) => eprintln!("SKIP: {name}: setpriv cannot be started ({error})"),
    }
}

fn tell(story: impl AsyncFnOnce(&Lab)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let lab = Lab::open();
        tokio::time::timeout(TEST_TIMEOUT * 2, story(&lab))
            .await
            .expect("the story ends");
        lab.close().await;
    });
}

impl Lab {
    pub(crate) fn open() -> Self {
        let state = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        Self {
            native: open(state.path(), &installation),
            installation,
            state,
        }
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        spec(&self.installation)
    }

    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Result<Warden, BackendError> {
        Ok(greet(self.native.create(spec).await?).await)
    }

    /// One command in a fresh sandbox.
    pub(crate) async fn run(&self, command: &str) -> Said {
        self.run_in(&self.spec(), command).await
    }

    pub(crate) async fn run_in(&self, spec: &SandboxSpec, command: &str) -> Said {
        let warden = self
            .create(spec)
            .await
            .unwrap_or_else(|error| panic!("{}", why(&error)));
        let said = sh(&warden, command).await;
        self.native.destroy(&spec.id).await.unwrap();
        said
    }

    /// A probe in Python, which must print what it found.
    pub(crate) async fn python(&self, probe: &str) -> Said {
        self.run(&format!("exec python3 - <<'PROBE'\n{probe}\nPROBE"))
            .await
    }

    /// Nothing may be left: no folder, no process, no cgroup.
    async fn close(self) {
        let left = self.native.list().await.unwrap();
        for found in &left {
            self.native.destroy(&found.id).await.unwrap();
        }
        until("no process is left", || {
            holders(self.state.path()).is_empty()
        })
        .await;
        drop(self.native);
        // A creation that was given up holds on to the installation until its thread is done.
        until("no cgroup is left", || {
            groups_of(&self.installation).is_empty()
        })
        .await;
    }
}

pub(crate) fn open(state: &Path, installation: &InstallationId) -> NativeBackend {
    open_starting(state, installation, EarlyStart::Never)
}

pub(crate) fn open_starting(
    state: &Path,
    installation: &InstallationId,
    early: EarlyStart,
) -> NativeBackend {
    let config = NativeConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: Vec::new(),
        authority: None,
        total: hermetic_native::TotalLimits::default(),
    };
    NativeBackend::open_starting(config, early).unwrap()
}

/// How many of our children are first processes of sandboxes that nobody has asked for yet.
pub(crate) fn waiting_cages() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect::<String>();
    let waits = |pid: &&str| {
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        // The first process of a sandbox that is there counts as 1 in it.
        let numbers = read("status");
        let inside = numbers.lines().find(|line| line.starts_with("NSpid:"));
        read("cmdline").starts_with("hermetic-cage")
            && inside.is_some_and(|line| !line.ends_with("\t1"))
    };
    children.split_whitespace().filter(waits).count()
}

pub(crate) fn spec(installation: &InstallationId) -> SandboxSpec {
    SandboxSpec {
        installation: installation.clone(),
        conversation: ConversationKey::new("agent:main:test:dm:1"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(120),
    }
}

pub(crate) async fn greet(link: WardenLink) -> Warden {
    Warden::greet(link.into_stream(), TEST_TIMEOUT)
        .await
        .unwrap()
}

pub(crate) async fn sh(warden: &Warden, command: &str) -> Said {
    let mut run = RunRequest::new(["/bin/bash", "-c", command]);
    run.output = Streams::Merged;
    said(warden.run(run).await.unwrap()).await
}

/// What a command says, to its end.
pub(crate) async fn said(mut running: RunningCommand) -> Said {
    let mut text = Vec::new();
    while let Some(event) = running.next().await.unwrap() {
        match event {
            RunEvent::Out(bytes) | RunEvent::Err(bytes) => text.extend_from_slice(&bytes),
            RunEvent::Ended(ended) => {
                let code = match ended.status {
                    ExitState::Exited(code) => code,
                    ExitState::Signalled(signal) => 128 + signal,
                    ExitState::Unknown => -1,
                };
                let text = String::from_utf8_lossy(&text).into_owned();
                return Said { code, text };
            }
            RunEvent::Started { .. } | RunEvent::Skipped(_) => {}
        }
    }
    panic!("the command has no end");
}

/// Waits for something to be so; there is no event for what happens in another process.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(TEST_TIMEOUT, async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("still not so: {what}"));
}

/// Processes that have a sandbox of this state folder mounted, outside of ours.
pub(crate) fn holders(state: &Path) -> Vec<u32> {
    let name = state.file_name().unwrap().to_str().unwrap().to_owned();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/mountinfo"))
                .is_ok_and(|mounts| mounts.contains(&name))
        })
        .collect()
}

/// What is left of an installation in any cgroup hierarchy.
pub(crate) fn groups_of(installation: &InstallationId) -> Vec<PathBuf> {
    let mut left = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    let name = format!("hermetic-{installation}");
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            if entry.file_name() == name.as_str() && !stays_with_its_unit(&entry.path()) {
                left.push(entry.path());
            }
            open.push(entry.path());
        }
    }
    left
}

/// In version 2 an installation's own group is as old as the service or scope that it is in, and goes with
/// it: it may be empty, and nobody's.
fn stays_with_its_unit(group: &Path) -> bool {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let mut below = entries.filter(|entry| entry.path().is_dir());
    group.join("cgroup.subtree_control").is_file() && below.next().is_none()
}

pub(crate) fn why(error: &BackendError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => format!("{error:?}"),
    }
}

pub(crate) async fn finished<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, future)
        .await
        .expect("it ends in time")
}
