//! A real sshd on loopback, with its own keys, port, folders and account.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{
    Backend, FinishedCommand, NetworkMode, Sandbox, SandboxLifeline, SandboxPersistence,
    SandboxSpec, SystemView,
};
use hermetic_ssh::{SshBackend, SshConfig};
use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The account that commands run as when the tests are root's.
const LODGER: u32 = 65_432;

pub(crate) struct Lab {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    pub(crate) user: String,
    sshd: Option<Child>,
}

impl Lab {
    /// Says why where there can be none.
    pub(crate) fn open() -> Option<Self> {
        Self::with("")
    }

    /// With more lines for its configuration.
    pub(crate) fn with(lines: &str) -> Option<Self> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let (Some(sshd), true) = (sshd, Path::new("/usr/bin/ssh").exists()) else {
            eprintln!("SKIP: ssh: no sshd here");
            return None;
        };
        let root = rustix::process::getuid().is_root();
        let folder = tempfile::Builder::new().prefix("hs").tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let port = free_port();
        let mut lab = Self {
            folder,
            port,
            user: "lodger".to_owned(),
            sshd: None,
        };
        lab.write_account(root);
        lab.make_key("host_key");
        lab.make_key("key");
        fs::copy(lab.at("key.pub"), lab.at("authorized")).unwrap();
        lab.write_client("");
        lab.write_server(lines);
        lab.start(sshd, root);
        lab.is_ready().then_some(lab)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The account's home on the remote side.
    pub(crate) fn home(&self) -> PathBuf {
        self.at("home")
    }

    pub(crate) fn config(&self, installation: &InstallationId) -> SshConfig {
        SshConfig {
            host: "127.0.0.1".to_owned(),
            user: Some(self.user.clone()),
            port: Some(self.port),
            key: Some(self.at("key")),
            config_file: Some(self.at("ssh_config")),
            workdir: None,
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
        }
    }

    pub(crate) fn backend(&self, installation: &InstallationId) -> Arc<dyn Backend> {
        Arc::new(SshBackend::new(self.config(installation)))
    }

    /// The client's configuration file, with more lines.
    pub(crate) fn write_client(&self, lines: &str) {
        let text = format!(
            "{lines}\nUserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\nIdentityAgent none\n",
            self.at("known_hosts").display()
        );
        fs::write(self.at("ssh_config"), text).unwrap();
    }

    /// A new host key, as after a new installation, or as of somebody in between.
    pub(crate) fn change_host_key(&mut self) {
        self.stop();
        fs::remove_file(self.at("host_key")).unwrap();
        self.make_key("host_key");
        self.restart();
    }

    /// Ends the listener and every connection, as a crash would.
    pub(crate) fn stop(&mut self) {
        let Some(mut sshd) = self.sshd.take() else {
            return;
        };
        let mut all = children_of(sshd.id());
        for child in all.clone() {
            all.extend(children_of(child).into_iter().filter(|pid| is_sshd(*pid)));
        }
        sshd.kill().unwrap();
        sshd.wait().unwrap();
        for pid in all {
            kill(pid);
        }
    }

    /// Ends the connections and leaves the listener.
    pub(crate) fn cut(&self) {
        let listener = self.sshd.as_ref().expect("it runs").id();
        for child in children_of(listener) {
            for grandchild in children_of(child) {
                if is_sshd(grandchild) {
                    kill(grandchild);
                }
            }
            kill(child);
        }
    }

    pub(crate) fn restart(&mut self) {
        let root = rustix::process::getuid().is_root();
        self.start("/usr/sbin/sshd", root);
        assert!(self.is_ready(), "sshd comes back");
    }

    fn start(&mut self, sshd: &str, root: bool) {
        if root {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        // An account of the tests' own, seen by this sshd only.
        let script = r#"mount --bind "$1" /etc/passwd && exec "$2" -D -e -f "$3""#;
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !root {
            command.args(["--user", "--map-current-user", "--keep-caps"]);
        }
        let child = command
            .args(["sh", "-c", script, "sh"])
            .arg(self.at("passwd"))
            .arg(sshd)
            .arg(self.at("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.at("log")).unwrap())
            .spawn()
            .unwrap();
        self.sshd = Some(child);
    }

    fn is_ready(&self) -> bool {
        for _ in 0..200 {
            let mut greeting = [0; 4];
            if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", self.port))
                && stream.read_exact(&mut greeting).is_ok()
            {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.at("log")).unwrap_or_default();
        eprintln!("SKIP: ssh: sshd does not start here: {}", log.trim());
        false
    }

    fn write_account(&self, root: bool) {
        let (uid, gid) = match root {
            true => (LODGER, LODGER),
            false => (
                rustix::process::getuid().as_raw(),
                rustix::process::getgid().as_raw(),
            ),
        };
        fs::create_dir(self.home()).unwrap();
        fs::set_permissions(self.home(), Permissions::from_mode(0o755)).unwrap();
        if root {
            chown(self.home(), Some(uid), Some(gid)).unwrap();
        }
        let others: String = fs::read_to_string("/etc/passwd")
            .unwrap()
            .lines()
            .filter(|line| !line.contains(&format!(":{uid}:")))
            .map(|line| format!("{line}\n"))
            .collect();
        let own = format!(
            "lodger:x:{uid}:{gid}::{}:/bin/bash\n",
            self.home().display()
        );
        fs::write(self.at("passwd"), own + &others).unwrap();
    }

    fn write_server(&self, lines: &str) {
        let text = format!(
            "{lines}\nPort {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
             StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nMaxStartups 100\nLogLevel INFO\n",
            self.port,
            self.at("host_key").display(),
            self.at("authorized").display(),
        );
        fs::write(self.at("sshd_config"), text).unwrap();
    }

    fn make_key(&self, name: &str) {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
            .arg(self.at(name))
            .status()
            .unwrap();
        assert!(made.success());
        fs::set_permissions(
            self.at(&format!("{name}.pub")),
            Permissions::from_mode(0o644),
        )
        .unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn is_sshd(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .is_ok_and(|name| name.trim().starts_with("sshd"))
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn spec(installation: &InstallationId, persistence: SandboxPersistence) -> SandboxSpec {
    SandboxSpec {
        installation: installation.clone(),
        conversation: ConversationKey::new("agent:main:test:dm:1"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
}

pub(crate) async fn make(backend: &Arc<dyn Backend>, spec: &SandboxSpec) -> Sandbox {
    let link = backend.create(spec).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, backend.description(), link)
        .await
        .unwrap();
    sandbox.with_way_back(backend)
}

pub(crate) async fn run(sandbox: &Sandbox, text: &str) -> FinishedCommand {
    carry_out(sandbox, hermetic_types::Command::script(text)).await
}

/// In the conversation's one shell.
pub(crate) async fn in_shell(sandbox: &Sandbox, text: &str) -> FinishedCommand {
    carry_out(sandbox, hermetic_types::Command::shell(text)).await
}

async fn carry_out(sandbox: &Sandbox, mut command: hermetic_types::Command) -> FinishedCommand {
    command.timeout = Some(Duration::from_secs(60));
    let command = cleared(command);
    let stop = CancellationToken::new();
    sandbox.run(command, 1 << 20, &stop).await.unwrap()
}

pub(crate) fn stdout(finished: &FinishedCommand) -> String {
    String::from_utf8_lossy(&finished.stdout.clone().into_bytes()).into_owned()
}

/// Waits until a file is there, which a command makes.
pub(crate) async fn until_there(path: &Path) {
    until(&path.display().to_string(), || path.exists()).await;
}

/// Waits until no process has this among its words.
pub(crate) async fn until_gone(marker: &str) {
    let gone = format!("the end of {marker}");
    until(&gone, || processes_with(marker).is_empty()).await;
}

/// Waits for what will come, and fails when it does not.
pub(crate) async fn until(what: &str, seen: impl Fn() -> bool) {
    let waiting = async {
        while !seen() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"));
}

/// Living processes with this in a word of theirs.
pub(crate) fn processes_with(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
        .collect()
}
