//! A warden of its own for each test, and nothing left of it afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermetic_warden::client::{RunEvent, RunningCommand, Warden, WardenCallError};
use hermetic_warden::protocol::{CommandEnd, RunRequest};
use tokio::net::UnixStream;
use tokio::process::{ChildStdin, ChildStdout};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) type Pipes = tokio::io::Join<ChildStdout, ChildStdin>;

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    program: Child,
    /// Where its file lies.
    shelf: tempfile::TempDir,
}

/// Everything a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) skipped: u64,
    pub(crate) ended: CommandEnd,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(&[], None).await
    }

    pub(crate) async fn with(options: &[&str], uid: Option<u32>) -> Self {
        Self::start(options, uid, PATH, Stdio::null).await
    }

    /// With its stdin and stdout for a first link.
    pub(crate) async fn on_stdio(options: &[&str]) -> (Self, Pipes) {
        let options: Vec<_> = ["--stdio"].iter().chain(options).copied().collect();
        let mut lab = Self::start(&options, None, PATH, Stdio::piped).await;
        let from = lab.program.stdout.take().unwrap();
        let to = lab.program.stdin.take().unwrap();
        let from = ChildStdout::from_std(from).unwrap();
        let to = ChildStdin::from_std(to).unwrap();
        (lab, tokio::io::join(from, to))
    }

    pub(crate) async fn with_path(path: &str) -> Self {
        Self::start(&[], None, path, Stdio::null).await
    }

    async fn start(options: &[&str], uid: Option<u32>, path: &str, stdio: fn() -> Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let (shelf, program) = program();
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen"])
            .arg(folder.path().join("socket"))
            .args(options)
            .env_clear()
            .env("PATH", path)
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .stdin(stdio())
            .stdout(stdio())
            .stderr(Stdio::null());
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        let lab = Self {
            program: command.spawn().unwrap(),
            folder,
            shelf,
        };
        lab.stream().await;
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    pub(crate) async fn stream(&self) -> UnixStream {
        let connect = async {
            loop {
                match UnixStream::connect(self.path("socket")).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, connect)
            .await
            .expect("the warden listens")
    }

    /// `warden connect`, as an exec of a backend would start it.
    pub(crate) fn connect(&self) -> tokio::process::Child {
        tokio::process::Command::new(self.shelf.path().join("warden"))
            .arg("connect")
            .arg(self.path("socket"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    pub(crate) async fn warden(&self) -> Warden {
        Warden::greet(self.stream().await, PATIENCE).await.unwrap()
    }

    /// Waits for the program's own end.
    pub(crate) async fn until_ended(&mut self) {
        let ended = async {
            while self.program.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended)
            .await
            .expect("the warden ends");
    }

    pub(crate) fn kill(&mut self) {
        self.program.kill().unwrap();
    }

    pub(crate) fn rss_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The program as a file, gone with its folder.
fn program() -> (tempfile::TempDir, PathBuf) {
    let folder = in_memory().unwrap_or_else(|| tempfile::tempdir().unwrap());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("warden");
    fs::write(&path, hermetic_embedded::WARDEN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

pub(crate) fn sh(text: &str) -> RunRequest {
    RunRequest::new(["bash", "-c", text])
}

pub(crate) async fn told(mut running: RunningCommand) -> Result<Told, WardenCallError> {
    let mut told = Told {
        out: Vec::new(),
        err: Vec::new(),
        skipped: 0,
        ended: CommandEnd {
            status: hermetic_warden::protocol::ExitState::Unknown,
            cut: None,
            usage: Default::default(),
            killed_for_memory: false,
            leftovers: 0,
            cwd: None,
            shell_fresh: false,
            shell_lost: None,
        },
    };
    let all = async {
        while let Some(event) = running.next().await? {
            match event {
                RunEvent::Started { .. } => {}
                RunEvent::Out(bytes) => told.out.extend_from_slice(&bytes),
                RunEvent::Err(bytes) => told.err.extend_from_slice(&bytes),
                RunEvent::Skipped(count) => told.skipped += count,
                RunEvent::Ended(ended) => told.ended = ended,
            }
        }
        Ok(told)
    };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("the command ends")
}

pub(crate) async fn run(warden: &Warden, run: RunRequest) -> Told {
    told(warden.run(run).await.unwrap()).await.unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let wait = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        panic!("still not so: {what}");
    }
}

/// Whether that process lives; the dead that nobody has waited for do not.
pub(crate) fn alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
}

/// As sandboxes have it: a disk's file system may map far more of a file than is touched.
fn in_memory() -> Option<tempfile::TempDir> {
    let place = "/dev/shm";
    let flags = rustix::fs::statvfs(place).ok()?.f_flag;
    if flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return None;
    }
    tempfile::tempdir_in(place).ok()
}
