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

fn kept(conversation: &str) -> SandboxSpec {
    SandboxSpec {
        installation: InstallationId::random(),
        conversation: ConversationKey::new(conversation),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Kept,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(60),
    }
}

/// Nothing comes from one that is not there any more.
async fn has_ended(link: hermetic_sandbox::WardenLink) -> bool {
    let mut stream = link.into_stream();
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest);
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_bring_it_back_at_once_no_warden_is_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let backend = open(folder.path());
    let spec = kept("twice");
    drop(backend.create(&spec).await.expect("a sandbox"));
    backend.stop(&spec.id).await.expect("it stops");
    let (one, other) = tokio::join!(backend.resume(&spec), backend.resume(&spec));
    backend.destroy(&spec.id).await.expect("it goes");
    for link in [one, other].into_iter().flatten() {
        assert!(
            has_ended(link).await,
            "a warden that nobody knows of lives on"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warden_that_cannot_be_written_down_is_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let backend = open(folder.path());
    let spec = kept("unwritten");
    drop(backend.create(&spec).await.expect("a sandbox"));
    backend.stop(&spec.id).await.expect("it stops");
    let life = folder.path().join("local").join(spec.id.as_str());
    // In the way of the record.
    std::fs::create_dir(life.join("life.partial")).expect("a folder can be made");
    backend
        .resume(&spec)
        .await
        .expect_err("it cannot be written down");
    let link = std::os::unix::net::UnixStream::connect(life.join("warden.sock"));
    if let Ok(link) = link {
        link.set_nonblocking(true).expect("a socket");
        let link = tokio::net::UnixStream::from_std(link).expect("a socket");
        assert!(has_ended(hermetic_sandbox::WardenLink::new(link)).await);
    }
    backend.destroy(&spec.id).await.expect("it goes");
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
