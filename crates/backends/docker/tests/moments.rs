//! Kills at chosen moments: the engine has just been sent a certain request.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hermetic_docker::{DockerBackend, EngineAddress};
use hermetic_sandbox::{
    Backend, BackendError, FoundState, SandboxLifeline, SandboxPersistence, SandboxSpec,
};
use hermetic_types::InstallationId;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::lab::{self, Lab, PATIENCE, begin, docker, greet, image, sh, stories, until};

/// Set for a process that is to be killed: its installation, and whether its sandbox is tied.
const CREATOR: &str = "HERMETIC_TEST_CREATOR";

/// In the order in which a life asks for them.
const CREATE: [&str; 3] = ["POST containers/create", "POST /attach", "POST /start"];
/// Asked for by the creator while its command runs.
const RUN: &str = "GET containers/json";
const STOP: &str = "POST /stop";
const DESTROY: &str = "DELETE containers/";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_dies_at_any_moment_leaves_nothing_that_is_not_found() {
    const NAME: &str = "an_engine_that_dies_at_any_moment_leaves_nothing_that_is_not_found";
    let mut engine = match Engine::of_its_own().await {
        Ok(engine) => engine,
        Err(why) => return eprintln!("SKIP: {NAME}: {why}"),
    };
    let host = engine.address().to_string();
    docker(
        &["--host", &host, "create", "--name", "not-ours"],
        &[&image()],
    )
    .await;
    // While the warden is put on the image; from then on it is there.
    dies_at(&mut engine, "POST /commit").await;
    let lab = Lab::open(|config| config.address = engine.address());
    assert_eq!(lab.run("echo hi").await, "hi\n");
    for moment in CREATE.into_iter().chain([STOP, DESTROY]) {
        dies_at(&mut engine, moment).await;
    }
    engine.end(Signal::TERM).await;
}

async fn dies_at(engine: &mut Engine, moment: &str) {
    let mut watched = Watched::before(&engine.socket());
    let lab = Lab::open(|config| config.address = watched.address());
    let mut spec = lab.spec();
    spec.persistence = SandboxPersistence::Kept;
    let life = tokio::spawn(live(lab.docker.clone(), spec.clone()));
    watched.until_asked(moment).await;
    engine.end(Signal::KILL).await;
    let lived = tokio::time::timeout(PATIENCE * 2, life).await;
    // Whoever waited has an answer: it came through in time, or the engine is away.
    let lived = lived.expect("an answer").unwrap();
    assert!(
        matches!(lived, Ok(()) | Err(BackendError::Unavailable { .. })),
        "{moment}: {lived:?}"
    );
    engine.start_again().await;
    lab.docker.destroy(&spec.id).await.unwrap();
    lab.close().await;
    let host = engine.address().to_string();
    let all = docker(&["--host", &host, "ps", "-a", "--format"], &["{{.Names}}"]).await;
    assert_eq!(all, "not-ours\n", "{moment}");
}

async fn live(docker: DockerBackend, spec: SandboxSpec) -> Result<(), BackendError> {
    let link = docker.create(&spec).await?;
    drop(link);
    docker.stop(&spec.id).await?;
    docker.destroy(&spec.id).await
}

stories! {
    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        let theirs = lab::stranger(&format!("not-ours-{}", lab.installation)).await;
        for moment in CREATE.into_iter().chain([RUN, STOP, DESTROY]) {
            crash_and_count(lab, "ledger", moment).await;
        }
        theirs.is_still_there().await;
        theirs.remove().await;
    }

    async fn a_killed_creator_takes_its_tied_sandbox_along(lab: &Lab) {
        for moment in CREATE.into_iter().chain([RUN, DESTROY]) {
            crash_and_count(lab, "creator", moment).await;
        }
    }
}

/// Kills a process at this moment of its sandbox's life, and looks at what is left.
async fn crash_and_count(lab: &Lab, bond: &str, moment: &str) {
    let Ok(EngineAddress::Socket(engine)) = EngineAddress::find(&|name| std::env::var(name).ok())
    else {
        return eprintln!("SKIP: crash_and_count: the engine is no socket");
    };
    let mut watched = Watched::before(&engine);
    let mut creator = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "moments::creator", "--nocapture"])
        .env(CREATOR, format!("{} {bond}", lab.installation))
        .env("DOCKER_HOST", watched.address().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    watched.until_asked(moment).await;
    creator.kill().unwrap();
    creator.wait().unwrap();

    // An engine goes on with what it was asked last.
    until("the engine has answered", async || watched.under_way() == 0).await;
    until("nothing is half-made", async || {
        let found = lab.docker.list().await.unwrap();
        found.iter().all(|found| found.state != FoundState::Busy)
    })
    .await;
    if bond == "creator" {
        until("what was tied is dead", async || {
            let found = lab.docker.list().await.unwrap();
            found.iter().all(|found| found.state == FoundState::Broken)
        })
        .await;
    }
    for found in lab.docker.list().await.unwrap() {
        if found.state == FoundState::Running && ![STOP, DESTROY].contains(&moment) {
            let link = lab.docker.connect(&found.id).await.unwrap();
            let mut spec = lab.spec();
            spec.id = found.id.clone();
            assert_eq!(sh(&greet(&spec, link).await, "echo alive").await, "alive\n");
        }
        lab.docker.destroy(&found.id).await.unwrap();
    }
    until("nothing is left", async || {
        lab.docker.list().await.unwrap().is_empty()
    })
    .await;
}

/// Not a story: the process that is killed in one.
#[tokio::test]
async fn creator() {
    let Ok(told) = std::env::var(CREATOR) else {
        return;
    };
    let (installation, bond) = told.split_once(' ').unwrap();
    let installation: InstallationId = installation.parse().unwrap();
    let docker = lab::open(&installation, |_| {});
    let mut spec = lab::spec(&installation);
    match bond {
        "creator" => spec.lifeline = SandboxLifeline::Creator,
        _ => spec.persistence = SandboxPersistence::Kept,
    }
    // Long enough for whoever looks for it.
    spec.lifetime = Duration::from_secs(60);
    let sandbox = greet(&spec, docker.create(&spec).await.unwrap()).await;
    let _running = begin(&sandbox, "echo ready; sleep 600").await;
    docker.list().await.unwrap();
    docker.stop(&spec.id).await.unwrap();
    docker.destroy(&spec.id).await.unwrap();
    std::future::pending::<()>().await;
}

/// A socket before the engine's own, where somebody looks at what is asked.
struct Watched {
    folder: tempfile::TempDir,
    asked: mpsc::UnboundedReceiver<String>,
    /// Whose copies are the requests that are not answered yet.
    requests: Arc<()>,
    passing: JoinHandle<()>,
}

impl Watched {
    fn before(engine: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let (tell, asked) = mpsc::unbounded_channel();
        let requests = Arc::new(());
        let passing = tokio::spawn(pass(
            listener,
            engine.to_owned(),
            tell,
            Arc::downgrade(&requests),
        ));
        Self {
            folder,
            asked,
            requests,
            passing,
        }
    }

    fn address(&self) -> EngineAddress {
        EngineAddress::Socket(self.folder.path().join("socket"))
    }

    fn under_way(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }

    /// Until the engine was sent a request with this method and this in its path.
    async fn until_asked(&mut self, moment: &str) {
        let (method, part) = moment.split_once(' ').unwrap();
        let waiting = async {
            while let Some(line) = self.asked.recv().await {
                if line.starts_with(method) && line.contains(part) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("never asked: {moment}"));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.passing.abort();
    }
}

async fn pass(
    listener: UnixListener,
    engine: PathBuf,
    tell: mpsc::UnboundedSender<String>,
    requests: Weak<()>,
) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let (engine, tell, mut request) = (engine.clone(), tell.clone(), requests.upgrade());
        tokio::spawn(async move {
            let Ok(mut engine) = UnixStream::connect(engine).await else {
                return;
            };
            // One request for each connection, whose first line comes at once.
            let mut first = vec![0; 16 << 10];
            let Ok(length @ 1..) = stream.read(&mut first).await else {
                return;
            };
            if engine.write_all(&first[..length]).await.is_ok() {
                let text = String::from_utf8_lossy(&first[..length]);
                let line = text.lines().next().unwrap_or_default().to_owned();
                // The answer to this one is a link, which lives as long as the container.
                if line.contains("/attach") || line.contains("/exec/") {
                    request = None;
                }
                let _ = tell.send(line);
                let _ = copy_bidirectional(&mut stream, &mut engine).await;
            }
            drop(request);
        });
    }
}
