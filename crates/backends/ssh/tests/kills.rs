//! The server, or we, are killed in the middle of a create, a run, a stop and a destroy. Afterwards
//! nothing of ours is left, and a neighbour's process is still there.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{Backend, BackendError, Sandbox, SandboxPersistence, SandboxSpec};
use hermetic_ssh::{SshBackend, SshConfig};
use hermetic_types::{InstallationId, SandboxId};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, spec, until, until_gone, until_there};

/// Set for a process that is to be killed: its lab's folder and port, and the sandbox.
const CREATOR: &str = "HERMETIC_TEST_SSH_CREATOR";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Create,
    Run,
    Stop,
    Destroy,
}
use Moment::{Create, Destroy, Run, Stop};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_any_moment_leaves_nothing_that_is_not_found() {
    for moment in [Create, Run, Stop, Destroy] {
        let Some(mut lab) = Lab::open() else { return };
        let neighbour = Neighbour::new();
        let installation = InstallationId::random();
        let backend = lab.backend(&installation);
        let spec = spec(&installation, SandboxPersistence::Kept);
        let life = tokio::spawn(live(Arc::clone(&backend), spec.clone(), lab.home(), moment));
        let held = until_in_the_middle(&lab, &spec, moment).await;
        lab.stop();
        drop(held);
        // An answer that came in time, or a word that the host is away.
        let lived = life.await.unwrap();
        assert!(
            matches!(lived, Ok(()) | Err(BackendError::Unavailable { .. })),
            "{moment:?}: {lived:?}"
        );
        lab.restart();
        nothing_is_left(&lab, &backend, &spec).await;
        neighbour.stays();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_dies_at_any_moment_leaves_nothing_that_is_not_found() {
    for moment in [Create, Run, Stop, Destroy] {
        let Some(lab) = Lab::open() else { return };
        let neighbour = Neighbour::new();
        let installation = InstallationId::random();
        let spec = spec(&installation, SandboxPersistence::Kept);
        let folder = lab.folder.path().display();
        let told = format!(
            "{folder} {} {installation} {} {moment:?}",
            lab.port, spec.id
        );
        let mut creator = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::creator", "--nocapture"])
            .env(CREATOR, told)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let held = until_in_the_middle(&lab, &spec, moment).await;
        creator.kill().unwrap();
        creator.wait().unwrap();
        drop(held);
        // Our own side goes by itself.
        until_gone(&lab.at("ssh_config").display().to_string()).await;
        nothing_is_left(&lab, &lab.backend(&installation), &spec).await;
        neighbour.stays();
    }
}

async fn nothing_is_left(lab: &Lab, backend: &Arc<dyn Backend>, spec: &SandboxSpec) {
    backend.destroy(&spec.id).await.unwrap();
    assert_eq!(backend.list().await.unwrap(), []);
    until_gone(&marker(spec)).await;
    let there = sandboxes(lab, spec);
    assert_eq!(fs::read_dir(there).unwrap().count(), 0);
}

/// A life: made, at work, and then stopped or destroyed.
async fn live(
    backend: Arc<dyn Backend>,
    spec: SandboxSpec,
    home: PathBuf,
    moment: Moment,
) -> Result<(), BackendError> {
    let link = backend.create(&spec).await?;
    if let Ok(sandbox) = Sandbox::greet(&spec.id, backend.description(), link).await {
        let (begun, go_on) = (home.join("begun"), home.join("go-on"));
        let text = format!("touch {}; sleep {}", begun.display(), marker(&spec));
        let command = cleared(hermetic_types::Command::script(text));
        let stop = CancellationToken::new();
        tokio::select! {
            // Its link may be lost.
            _ = sandbox.run(command, 1 << 16, &stop) => {}
            () = until_there(&go_on) => {}
        }
    }
    match moment {
        Destroy => backend.destroy(&spec.id).await,
        Create | Run | Stop => backend.stop(&spec.id).await,
    }
}

/// What is returned holds the far side up, until it is dropped.
async fn until_in_the_middle(lab: &Lab, spec: &SandboxSpec, moment: Moment) -> Option<OwnedFd> {
    let folder = sandboxes(lab, spec).join(spec.id.as_str());
    until_there(&folder).await;
    if moment == Create {
        return None;
    }
    until_there(&lab.home().join("begun")).await;
    if moment == Run {
        return None;
    }
    // Stop and destroy wait for whoever has the folder's lock, and that is us.
    let held = lock(&folder);
    fs::write(lab.home().join("go-on"), "").unwrap();
    let inode = format!(":{} ", fs::metadata(&folder).unwrap().ino());
    until("somebody waits for the lock", || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks
            .lines()
            .any(|line| line.contains("->") && line.contains(&inode))
    })
    .await;
    Some(held)
}

fn lock(folder: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty()).unwrap();
    flock(&folder, FlockOperation::LockExclusive).unwrap();
    folder
}

fn sandboxes(lab: &Lab, spec: &SandboxSpec) -> PathBuf {
    let ours = lab
        .home()
        .join(".hermetic")
        .join(spec.installation.as_str());
    ours.join("sandboxes")
}

/// What its command has among its words, and nobody else.
fn marker(spec: &SandboxSpec) -> String {
    let number = u64::from_str_radix(&spec.id.as_str()[..8], 16).unwrap_or(1);
    format!("{}.25", 100_000 + number)
}

/// A process of somebody else's, on the same machine.
struct Neighbour(Child);

impl Neighbour {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn stays(mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "a neighbour was hit");
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a story: the process that is killed in one.
#[tokio::test(flavor = "multi_thread")]
async fn creator() {
    let Ok(told) = std::env::var(CREATOR) else {
        return;
    };
    let words: Vec<&str> = told.split(' ').collect();
    let folder = Path::new(words[0]);
    let installation: InstallationId = words[2].parse().unwrap();
    let mut spec = spec(&installation, SandboxPersistence::Kept);
    spec.id = words[3].parse::<SandboxId>().unwrap();
    let moment = [Create, Run, Stop, Destroy]
        .into_iter()
        .find(|moment| format!("{moment:?}") == words[4]);
    let backend = SshBackend::new(SshConfig {
        host: "127.0.0.1".to_owned(),
        user: Some("lodger".to_owned()),
        port: words[1].parse().ok(),
        key: Some(folder.join("key")),
        config_file: Some(folder.join("ssh_config")),
        workdir: None,
        installation,
        program: hermetic_embedded::WARDEN,
    });
    let _ = live(
        Arc::new(backend),
        spec,
        folder.join("home"),
        moment.unwrap(),
    )
    .await;
    std::future::pending::<()>().await;
}
