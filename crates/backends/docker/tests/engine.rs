//! The engine goes away and comes back, in the middle of everything.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermetic_docker::EngineAddress;
use hermetic_sandbox::{Backend, BackendError, SandboxPersistence};
use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::lab::{Lab, begin, docker, greet, image, sh};

/// An engine of this test's own: its data, its socket, its network.
pub(crate) struct Engine {
    folder: tempfile::TempDir,
    child: Option<Child>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_stopped_and_started_serves_again() {
    story(
        "an_engine_that_is_stopped_and_started_serves_again",
        Signal::TERM,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_killed_and_started_serves_again() {
    story(
        "an_engine_that_is_killed_and_started_serves_again",
        Signal::KILL,
    )
    .await;
}

async fn story(name: &str, signal: Signal) {
    let mut engine = match Engine::of_its_own().await {
        Ok(engine) => engine,
        Err(why) => return eprintln!("SKIP: {name}: {why}"),
    };
    let lab = Lab::open(|config| config.address = engine.address());

    let mut kept = lab.spec();
    kept.persistence = SandboxPersistence::Kept;
    let ephemeral = lab.spec();
    let one = lab.create(&kept).await;
    sh(&one, "echo mine > note").await;
    let two = lab.create(&ephemeral).await;
    let mut runs = [
        begin(&one, "echo ready; sleep 600").await,
        begin(&two, "echo ready; sleep 600").await,
    ];

    engine.end(signal).await;
    // Whoever waited for a command learns that the link is lost, and that nothing can be had now.
    for running in &mut runs {
        while let Ok(Some(_)) = running.next().await {}
    }
    assert!(!one.is_reachable() && !two.is_reachable());
    for refused in [
        lab.docker.create(&lab.spec()).await.map(drop),
        lab.docker.connect(&kept.id).await.map(drop),
        lab.docker.destroy(&ephemeral.id).await,
        lab.docker.list().await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, BackendError::Unavailable { .. }),
            "{refused}"
        );
    }

    engine.start_again().await;
    let back = greet(&kept, lab.docker.resume(&kept).await.unwrap()).await;
    assert_eq!(sh(&back, "cat note").await, "mine\n");
    let fresh = lab.spec();
    let new = lab.create(&fresh).await;
    assert_eq!(sh(&new, "echo new").await, "new\n");
    for id in [&kept.id, &ephemeral.id, &fresh.id] {
        lab.docker.destroy(id).await.unwrap();
    }
    lab.close().await;
    engine.end(Signal::TERM).await;
}

impl Engine {
    /// With the test image, or why there can be none.
    pub(crate) async fn of_its_own() -> Result<Self, String> {
        if let Some(why) = crate::lab::skip().await {
            return Err(why);
        }
        if !getuid().is_root() {
            return Err("only root can start an engine".to_owned());
        }
        let engine = Self::start().await?;
        engine.take_image().await;
        Ok(engine)
    }

    async fn start() -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("engine").tempdir();
        let folder = folder.map_err(|error| error.to_string())?;
        std::fs::write(folder.path().join("daemon.json"), "{}").unwrap();
        let mut engine = Self {
            folder,
            child: None,
        };
        engine.spawn()?;
        if engine.answers().await {
            return Ok(engine);
        }
        let log = std::fs::read_to_string(engine.folder.path().join("log")).unwrap_or_default();
        engine.end(Signal::TERM).await;
        Err(format!(
            "an engine of its own does not start: {}",
            log.lines().last().unwrap_or("")
        ))
    }

    pub(crate) async fn start_again(&mut self) {
        self.spawn().unwrap();
        assert!(self.answers().await, "the engine does not come back");
    }

    fn spawn(&mut self) -> Result<(), String> {
        let at = |name: &str| self.folder.path().join(name);
        let log = std::fs::File::create(at("log")).map_err(|error| error.to_string())?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "unshare", "--net", "--"])
            .args(["sh", "-c", "ip link set lo up; exec dockerd \"$@\"", "sh"])
            .arg("--config-file")
            .arg(at("daemon.json"))
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("run"))
            .arg("--pidfile")
            .arg(at("pid"))
            .arg("--host")
            .arg(self.address().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        self.child = Some(child);
        Ok(())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    pub(crate) fn address(&self) -> EngineAddress {
        EngineAddress::Socket(self.socket())
    }

    async fn answers(&mut self) -> bool {
        for _ in 0..600 {
            let child = self.child.as_mut().unwrap();
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            let lab = Lab::open(|config| config.address = self.address());
            if lab.docker.list().await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    }

    /// From the engine that all tests share to this one.
    async fn take_image(&self) {
        let tar = self.folder.path().join("image.tar");
        let tar = tar.to_str().unwrap();
        docker(&["save", "-o", tar], &[&image()]).await;
        let host = self.address().to_string();
        docker(&["--host", &host, "load", "-i"], &[tar]).await;
        std::fs::remove_file(tar).unwrap();
    }

    pub(crate) async fn end(&mut self, signal: Signal) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        tokio::task::spawn_blocking(move || child.wait().unwrap())
            .await
            .unwrap();
        // Where nobody collects the dead, a killed engine would take their numbers for living ones.
        for name in ["pid", "run/containerd/containerd.pid"] {
            let _ = std::fs::remove_file(self.folder.path().join(name));
        }
    }
}

impl Drop for Engine {
    /// What an engine that was killed leaves of itself: helpers that carry its folder in their
    /// words, and mounts below it.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for pid in helpers(self.folder.path()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        for mount in mounts_below(self.folder.path()) {
            let _ = Command::new("umount").args(["-l", &mount]).status();
        }
    }
}

fn helpers(folder: &Path) -> Vec<Pid> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| is_of(*pid, folder))
        .collect()
}

fn is_of(pid: Pid, folder: &Path) -> bool {
    std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
        .is_ok_and(|line| line.contains("containerd") && line.contains(folder.to_str().unwrap()))
}

pub(crate) fn mounts_below(folder: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    points
        .filter(|point| Path::new(point).starts_with(folder))
        .map(str::to_owned)
        .collect()
}
