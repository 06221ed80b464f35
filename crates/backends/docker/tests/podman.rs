//! Podman's compatible socket, and every story on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hermetic_docker::EngineAddress;
use hermetic_sandbox::Backend;
use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::engine::mounts_below;
use crate::lab::{self, Lab, docker, image, until};
use crate::retold::{retell, told};

/// A service of this test's own: its images, its socket.
struct Podman {
    folder: tempfile::TempDir,
    child: Child,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_kept_on_podman() {
    // What the engine itself has a part in; the rest is between the warden and us, whatever started it.
    const SHORT: &[&str] = &[
        "conformance::a_fork_bomb",
        "conformance::a_gateway_that_comes_back",
        "conformance::a_kept_sandbox_resumes",
        "conformance::a_sandbox_is_listed",
        "conformance::a_timeout_ends",
        "conformance::destroying",
        "conformance::nothing_of_the_launcher",
        "conformance::open_files",
        "conformance::two_",
    ];
    let stories = told(SHORT, &["conformance::"]);
    on_podman("the_contract_is_kept_on_podman", stories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seal_holds_on_podman() {
    // Files that are held in odd ways are counted by us, on any engine alike.
    const SHORT: &[&str] = &["seal::", "limits::memory", "limits::a_small_disk"];
    let stories = told(SHORT, &["seal::", "limits::"]);
    on_podman("the_seal_holds_on_podman", stories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_on_podman() {
    const SHORT: &[&str] = &["life::", "moments::a_killed_creator"];
    let stories = told(SHORT, &["life::", "moments::a_killed"]);
    on_podman("nothing_is_left_on_podman", stories).await;
}

async fn on_podman(name: &str, stories: &[&str]) {
    let why = match lab::skip().await {
        None if !getuid().is_root() => Some("rootless Podman is not set up here".to_owned()),
        None if program("podman").is_none() => Some("no podman here".to_owned()),
        why => why,
    };
    if let Some(why) = why {
        return eprintln!("SKIP: {name}: {why}");
    }
    let podman = Podman::start().await;
    podman.take_image().await;
    let host = podman.address().to_string();
    retell(stories, &[("DOCKER_HOST", &host)]).await;
}

impl Podman {
    async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("podman").tempdir().unwrap();
        std::fs::write(folder.path().join("containers.conf"), "").unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command(folder.path())
            .args(["system", "service", "--time", "0"])
            .arg(format!("unix://{}", folder.path().join("socket").display()))
            .stderr(log)
            .spawn()
            .unwrap();
        let podman = Self { folder, child };
        until("podman answers", async || {
            let lab = Lab::open(|config| config.address = podman.address());
            lab.docker.list().await.is_ok()
        })
        .await;
        podman
    }

    fn address(&self) -> EngineAddress {
        EngineAddress::Socket(self.folder.path().join("socket"))
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
}

impl Drop for Podman {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.child.wait();
        for mount in mounts_below(self.folder.path()) {
            let _ = Command::new("umount")
                .args(["-l", &mount])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Podman with nothing of the machine's: no configuration, no images, and no systemd to ask.
fn command(folder: &Path) -> Command {
    let mut podman = Command::new("setpriv");
    // Its monitor leaves a note about a process that ran out of memory where it was started.
    podman.current_dir(folder);
    podman.args(["--pdeathsig", "TERM", "--", "podman"]).args([
        "--cgroup-manager",
        "cgroupfs",
        "--events-backend",
        "file",
    ]);
    for (word, name) in [
        ("--root", "root"),
        ("--runroot", "run"),
        ("--tmpdir", "tmp"),
    ] {
        podman.arg(word).arg(folder.join(name));
    }
    // The usual one cannot do with cgroups of both versions at once.
    if let Some(runc) = program("runc") {
        podman.arg("--runtime").arg(runc);
    }
    podman
        .env("CONTAINERS_CONF", folder.join("containers.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    podman
}

fn program(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.is_file())
}
