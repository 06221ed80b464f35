//! Engines without root: Podman's service and Docker's daemon, each as a plain user.
//!
//! Root enters a place of its own first (mounts, processes, a range of user numbers for `nobody`) and starts this
//! program there once more without rights. Nothing of the machine's changes, and everything in there ends with
//! it. A plain user with a range of numbers does the same where he is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hermetic_docker::{ContainerUser, DockerConfig, EngineAddress};
use hermetic_sandbox::{Backend, BackendError, HostMount, LayerState, MountMode};
use rustix::process::{Pid, Signal, getgid, getuid, kill_process};

use crate::lab::{self, Lab, WITHOUT_LIMITS, docker, image, sh, until};
use crate::retold::{retell, told};

/// Where the image is for a process that does not reach the engine of all tests.
const IMAGE: &str = "HERMETIC_TEST_ROOTLESS_IMAGE";

/// A few of each kind: what an engine without root does in another way than one with it.
const SHORT: &[&str] = &[
    "conformance::never_root::a_kept_sandbox_resumes",
    "conformance::never_root::destroying_ends",
    "seal::an_image_that_runs_as_root",
    "seal::no_capability",
    "seal::it_has_loopback",
    "limits::no_file_is_larger",
];
/// Everything but what takes an engine of the story's own.
const WHOLE: &[&str] = &[
    "conformance::",
    "seal::",
    "limits::",
    "life::",
    "moments::a_killed",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RootlessKind {
    Podman,
    Docker,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_kept_by_podman_without_root() {
    tell(
        "the_contract_is_kept_by_podman_without_root",
        RootlessKind::Podman,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_kept_by_docker_without_root() {
    tell(
        "the_contract_is_kept_by_docker_without_root",
        RootlessKind::Docker,
    )
    .await;
}

async fn tell(name: &str, kind: RootlessKind) {
    if let Some(why) = why_not(kind).await {
        return eprintln!("SKIP: {name}: {why}");
    }
    if getuid().is_root() {
        return as_a_plain_user(name).await;
    }
    let engine = RootlessEngine::start(kind).await;
    engine.take_image().await;
    let host = engine.address().to_string();
    // Before anything is accepted.
    let keeps_limits = refuses_what_it_cannot_bound(&engine).await;
    what_is_written_belongs_to_whoever_runs_it(&engine).await;
    let mut environment = vec![("DOCKER_HOST", host.as_str())];
    if !keeps_limits {
        environment.push((WITHOUT_LIMITS, "1"));
        eprintln!("SKIP: {name}: limits: this machine has no cgroups for an engine without root");
    }
    retell(told(SHORT, WHOLE), &environment).await;
}

/// A container without limits is not started by default. Returns whether the engine keeps them here.
async fn refuses_what_it_cannot_bound(engine: &RootlessEngine) -> bool {
    let lab = Lab::open(|config| engine.open(config));
    let readiness = lab.docker.readiness().await;
    let layer = |name| {
        readiness
            .layers
            .iter()
            .find(|layer| layer.name == name)
            .unwrap()
    };
    assert!(
        layer("engine").detail.contains("without root"),
        "{readiness:?}"
    );
    assert!(
        layer("identity")
            .detail
            .starts_with("the engine itself is not root"),
        "{readiness:?}"
    );
    let spec = lab.spec();
    let Err(refused) = lab.docker.create(&spec).await else {
        assert_eq!(
            readiness.missing().map(|layer| layer.name),
            None,
            "{readiness:?}"
        );
        lab.docker.destroy(&spec.id).await.unwrap();
        lab.close().await;
        return true;
    };
    assert!(!has_cgroups_of_version_2(), "{refused}");
    let BackendError::Unavailable { what, remedy } = &refused else {
        panic!("{refused}");
    };
    assert!(what.contains("no limit on processes and memory"), "{what}");
    assert!(
        remedy.contains("delegate.conf") && remedy.contains("docker_accept_risks"),
        "{remedy}"
    );
    for name in ["process limit", "memory limit"] {
        assert_eq!(layer(name).state, LayerState::Required, "{readiness:?}");
    }
    lab.close().await;
    // Who takes the risk is told what he has not.
    let lab = Lab::open(|config| {
        engine.open(config);
        config.accepted = vec!["limits".to_owned()];
    });
    let readiness = lab.docker.readiness().await;
    assert_eq!(
        readiness.missing().map(|layer| layer.name),
        None,
        "{readiness:?}"
    );
    let layer = |name| {
        readiness
            .layers
            .iter()
            .find(|layer| layer.name == name)
            .unwrap()
    };
    assert_eq!(layer("memory limit").state, LayerState::Missing);
    lab.close().await;
    false
}

/// A folder that is shown for writing gets files of the person's own, not of a number that nobody has.
async fn what_is_written_belongs_to_whoever_runs_it(engine: &RootlessEngine) {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let lab = Lab::open(|config| {
        engine.open(config);
        config.accepted = vec!["limits".to_owned()];
        config.options.user = ContainerUser::Host { uid, gid };
    });
    let shown = engine.folder.path().join("shown");
    std::fs::create_dir(&shown).unwrap();
    let mut spec = lab.spec();
    spec.mounts = vec![HostMount {
        source: shown.clone(),
        target: PathBuf::from("/shown"),
        mode: MountMode::ReadWrite,
    }];
    let sandbox = lab.create(&spec).await;
    assert_eq!(
        sh(&sandbox, "echo mine > /shown/note && echo written").await,
        "written\n"
    );
    lab.docker.destroy(&spec.id).await.unwrap();
    lab.close().await;
    let owner = std::os::unix::fs::MetadataExt::uid(&shown.join("note").metadata().unwrap());
    assert_eq!(owner, uid);
}

fn has_cgroups_of_version_2() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// What is missing for such an engine.
async fn why_not(kind: RootlessKind) -> Option<String> {
    let programs: &[&str] = match kind {
        RootlessKind::Podman => &["podman", "newuidmap", "runc"],
        RootlessKind::Docker => &["dockerd", "rootlesskit", "newuidmap", "runc"],
    };
    if let Some(missing) = programs.iter().find(|name| program(name).is_none()) {
        return Some(format!("no {missing} here"));
    }
    if std::env::var_os(IMAGE).is_none()
        && let Some(why) = lab::skip().await
    {
        return Some(why);
    }
    let ranges = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    let own = format!("{}:", user_name());
    match getuid().is_root() || ranges.lines().any(|line| line.starts_with(&own)) {
        true => None,
        false => Some("this user has no range of numbers in /etc/subuid".to_owned()),
    }
}

fn user_name() -> String {
    let said = Command::new("id").arg("-un").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    said.unwrap_or_default()
}

/// The user that a story is told as where root tells it: everybody has one of that name.
const NOBODY: u32 = 65534;

const ENTER: &str = r#"
folder=$1 program=$2 name=$3
mount -t proc proc /proc
for file in /etc/subuid /etc/subgid; do
    [ -e $file ] || : > $file
    mount --bind "$folder/range" $file
done
cd "$folder"
exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --ambient-caps=-all \
    "$program" --exact "$name" --nocapture
"#;

/// Starts the story once more as `nobody`, who has a range of numbers there and nowhere else.
async fn as_a_plain_user(name: &str) {
    let folder = tempfile::Builder::new().prefix("rl").tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    std::fs::write(at("range"), "nobody:1000000:65536\n").unwrap();
    // Folders above it may be closed to others.
    std::fs::copy(std::env::current_exe().unwrap(), at("program")).unwrap();
    docker(
        &["save", "-o", at("image.tar").to_str().unwrap()],
        &[&image()],
    )
    .await;
    std::os::unix::fs::chown(at("image.tar"), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut again = tokio::process::Command::new("unshare");
    again
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
        ])
        .args(["sh", "-euc", ENTER, "sh"])
        .arg(folder.path())
        .arg(at("program"))
        .arg(format!("rootless::{name}"))
        .env_clear()
        .env(
            "PATH",
            "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
        )
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .env("HERMETIC_TEST_IMAGE", image())
        .env(IMAGE, at("image.tar"))
        .envs(std::env::var_os("HERMETIC_LONG").map(|long| ("HERMETIC_LONG", long)))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = again.output().await.unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(ended.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "{said}");
    for line in errors.lines().filter(|line| line.starts_with("SKIP: ")) {
        eprintln!("{line}");
    }
}

/// An engine of this test's own, gone with it.
struct RootlessEngine {
    folder: tempfile::TempDir,
    kind: RootlessKind,
    child: Child,
}

impl RootlessEngine {
    async fn start(kind: RootlessKind) -> Self {
        let folder = tempfile::Builder::new().prefix("e").tempdir().unwrap();
        let mut command = match kind {
            RootlessKind::Podman => podman(folder.path()),
            RootlessKind::Docker => dockerd(folder.path()),
        };
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command
            .current_dir(folder.path())
            .env("XDG_RUNTIME_DIR", folder.path().join("run"))
            .env("XDG_DATA_HOME", folder.path().join("data"))
            .env("XDG_CONFIG_HOME", folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut engine = Self {
            folder,
            kind,
            child,
        };
        until("the engine answers", async || {
            if let Ok(Some(ended)) = engine.child.try_wait() {
                let log = std::fs::read_to_string(engine.folder.path().join("log"));
                panic!("{kind:?} {ended}: {}", log.unwrap_or_default());
            }
            let lab = Lab::open(|config| engine.open(config));
            lab.docker.list().await.is_ok()
        })
        .await;
        engine
    }

    fn address(&self) -> EngineAddress {
        EngineAddress::Socket(self.folder.path().join("socket"))
    }

    /// With nothing that a story of an earlier engine accepted.
    fn open(&self, config: &mut DockerConfig) {
        config.address = self.address();
        config.accepted = Vec::new();
    }

    async fn take_image(&self) {
        let tar = match std::env::var(IMAGE) {
            Ok(tar) => tar,
            Err(_) => {
                let tar = self.folder.path().join("image.tar");
                let tar = tar.to_str().unwrap().to_owned();
                docker(&["save", "-o", &tar], &[&image()]).await;
                tar
            }
        };
        let host = self.address().to_string();
        docker(&["--host", &host, "load", "-i"], &[&tar]).await;
    }
}

impl Drop for RootlessEngine {
    fn drop(&mut self) {
        let end = |pid: Option<i32>, signal| {
            let pid = pid.and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, signal));
        };
        end(i32::try_from(self.child.id()).ok(), Signal::TERM);
        let _ = self.child.wait();
        // Podman leaves a process behind that holds its namespaces.
        let pause = self.folder.path().join("run/libpod/tmp/pause.pid");
        let pause = std::fs::read_to_string(pause).ok();
        end(
            pause.and_then(|text| text.trim().parse().ok()),
            Signal::KILL,
        );
        // Files of numbers that only a namespace with the range can remove.
        let within: &[&str] = match self.kind {
            RootlessKind::Podman => &["podman", "unshare"],
            RootlessKind::Docker => &["rootlesskit"],
        };
        let mut remove = Command::new(within[0]);
        remove.args(&within[1..]).args(["rm", "-rf", "--"]);
        for name in ["data", "d"] {
            remove.arg(self.folder.path().join(name));
        }
        let _ = remove.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// With nothing of the person's: no configuration, no images, and no systemd to ask.
fn podman(folder: &Path) -> Command {
    std::fs::write(folder.join("containers.conf"), "").unwrap();
    let mut podman = Command::new("setpriv");
    podman
        .args([
            "--pdeathsig",
            "TERM",
            "--",
            "podman",
            "--cgroup-manager",
            "cgroupfs",
        ])
        .args(["--events-backend", "file", "--storage-driver", "overlay"])
        .arg("--root")
        .arg(folder.join("d"))
        .args(["--runtime", program("runc").unwrap().to_str().unwrap()])
        .args(["system", "service", "--time", "0"])
        .arg(format!("unix://{}", folder.join("socket").display()))
        .env("CONTAINERS_CONF", folder.join("containers.conf"));
    podman
}

/// With a network that leads nowhere: sandboxes have none.
fn dockerd(folder: &Path) -> Command {
    std::fs::write(folder.join("daemon.json"), "{}").unwrap();
    let inside = r#"
rm -f /run/docker /run/containerd /run/xtables.lock
exec unshare --net dockerd --rootless --iptables=false --ip6tables=false --bridge=none \
    --config-file "$1/daemon.json" --data-root "$1/d" --exec-root "$1/x" --pidfile "$1/pid" \
    --host "unix://$1/socket""#;
    let mut rootlesskit = Command::new("setpriv");
    rootlesskit
        .args(["--pdeathsig", "TERM", "--", "rootlesskit", "--net=host"])
        .arg(format!("--state-dir={}", folder.join("kit").display()))
        .args([
            "--copy-up=/etc",
            "--copy-up=/run",
            "sh",
            "-euc",
            inside,
            "sh",
        ])
        .arg(folder);
    rootlesskit
}

fn program(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.is_file())
}
