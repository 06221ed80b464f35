//! One sandbox's machine: processes in namespaces of their own on a disk of their own, made with
//! util-linux by whoever runs the tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const MAKE: &str = r#"
set -e
root=$1
for part in usr etc; do
    mount --rbind /$part $root/$part
    mount -o remount,bind,ro $root/$part
done
mount --rbind /dev $root/dev
mount -t proc proc $root/proc
ip link set lo up 2>/dev/null || true
exec chroot $root sh -c 'echo ready; exec sleep infinity </dev/null >/dev/null 2>&1'
"#;

pub(crate) struct Cage {
    root: PathBuf,
    id: String,
    /// The namespaces' maker, and the first process in them.
    life: Option<(Child, i32)>,
}

/// Why there can be none here.
pub(crate) fn lacking() -> Option<String> {
    let words = [
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--net",
        "--fork",
        "true",
    ];
    let tried = std::process::Command::new("unshare").args(words).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

impl Cage {
    pub(crate) fn new(folder: &Path, id: &str) -> Self {
        let root = folder.join(id);
        for name in [
            "usr",
            "etc",
            "proc",
            "dev",
            "tmp",
            "root",
            "run",
            "home/daytona",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            if let Ok(target) = fs::read_link(Path::new("/").join(name)) {
                symlink(target, root.join(name)).unwrap();
            }
        }
        Self {
            root,
            id: id.to_owned(),
            life: None,
        }
    }

    pub(crate) async fn start(&mut self, network_blocked: bool) {
        if self.life.is_some() {
            return;
        }
        let mut command = Command::new("setpriv");
        // Whoever ends the tests ends the sandboxes.
        command.args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--user",
            "--map-root-user",
        ]);
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        if network_blocked {
            command.arg("--net");
        }
        command.args(["bash", "-c", MAKE, "make"]).arg(&self.root);
        command.current_dir("/");
        let mut maker = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(maker.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap();
        assert_eq!(line.as_deref(), Some("ready"), "a sandbox can be made");
        let first = children(i32::try_from(maker.id().unwrap()).unwrap())[0];
        self.life = Some((maker, first));
    }

    /// The kernel ends every process in there with the first.
    pub(crate) async fn stop(&mut self) {
        if let Some((mut maker, first)) = self.life.take() {
            kill(first);
            let _ = maker.wait().await;
        }
    }

    pub(crate) fn remove(&self) {
        let _ = hermetic_sandbox::host::remove(&self.root);
    }

    /// A program run inside, with what the provider's own agent has as its environment.
    pub(crate) fn enter(&self, before: &[&str], words: &[&str]) -> Command {
        let (_, first) = self.life.as_ref().expect("the sandbox runs");
        let first = first.to_string();
        let entered = ["nsenter", "-t", &first, "-U", "-p", "-m", "-n", "-r"];
        let all: Vec<&str> = before
            .iter()
            .chain(&entered)
            .chain(&["--wdns=/root", "--preserve-credentials"])
            .chain(words)
            .copied()
            .collect();
        let mut command = Command::new(all[0]);
        command
            .args(&all[1..])
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .env("DAYTONA_SANDBOX_ID", &self.id)
            .kill_on_drop(true);
        command
    }

    /// Where a path of the sandbox's is out here.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        match path.strip_prefix('/') {
            Some(path) => self.root.join(path),
            None => self.root.join("root").join(path),
        }
    }
}

pub(crate) fn children(pid: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

pub(crate) fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// A process and all below it, leaves first.
pub(crate) fn kill_tree(pid: i32) {
    for child in children(pid) {
        kill_tree(child);
    }
    kill(pid);
}
