//! The local backend against the contract.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermetic_local::{LocalBackend, LocalConfig};
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_sandbox::{
    Backend, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};

hermetic_sandbox::conformance!(Some(candidate()));

/// Less than anybody's hard limit.
const OPEN_FILES: u64 = 256;

fn candidate() -> BackendCandidate {
    let folder = tempfile::tempdir().expect("a temporary folder");
    BackendCandidate {
        backend: open(&folder.path().join("one")),
        other: open(&folder.path().join("two")),
        installation: InstallationId::random(),
        system: SystemView::Host,
        keeps_limits: false,
        is_sealed: false,
        resumes: true,
        holds: Box::new(folder),
    }
}

fn open(state: &Path) -> Arc<dyn Backend> {
    std::fs::create_dir_all(state).expect("a folder can be made");
    let local = LocalBackend::open(LocalConfig {
        open_files: Some(OPEN_FILES),
        state: state.to_owned(),
        program: hermetic_embedded::WARDEN,
        workdir: state.to_owned(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]),
    });
    Arc::new(local.expect("the local backend opens"))
}

/// The gateway raises its own limit; what it starts does not inherit that.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_started_has_the_ordinary_limit_on_open_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let backend = open(folder.path());
    let spec = SandboxSpec {
        installation: InstallationId::random(),
        conversation: ConversationKey::new("files"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Creator,
        lifetime: Duration::from_secs(60),
    };
    let link = backend.create(&spec).await.expect("a sandbox");
    let life = folder.path().join("local").join(spec.id.as_str());
    let life = std::fs::read(life.join("life.json")).expect("its process is written down");
    let life: serde_json::Value = serde_json::from_slice(&life).expect("as JSON");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", life["pid"]));
    let limits = limits.expect("it lives");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().nth(3));
    assert_eq!(soft, Some(OPEN_FILES.to_string().as_str()), "{limits}");
    drop(link);
    backend.destroy(&spec.id).await.expect("it goes");
}
