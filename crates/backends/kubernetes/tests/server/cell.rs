//! One container: namespaces, a folder as root, nothing else of this machine but `/usr` to read, and a user
//! who is not root.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep;

pub(crate) struct VolumeMount {
    pub(crate) from: PathBuf,
    pub(crate) to: String,
    pub(crate) read_only: bool,
}

pub(crate) struct Order {
    pub(crate) root: PathBuf,
    pub(crate) user: u32,
    pub(crate) mounts: Vec<VolumeMount>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) workdir: String,
    pub(crate) words: Vec<String>,
    pub(crate) network: String,
}

pub(crate) struct Cell {
    order: Order,
    /// The process that waits for the container's first one.
    keeper: u32,
    exit: watch::Receiver<Option<i32>>,
    words: Arc<Mutex<Vec<u8>>>,
}

/// Makes the root and becomes the container's program, as a user of a namespace below.
const BUILD: &str = r#"
set -e
root=$1; up=$2; user=$3; workdir=$4; network=$5; shift 5
for name in bin sbin lib lib32 lib64; do
  [ ! -L /$name ] || ln -sfn usr/$name $root/$name
done
for name in passwd group hosts nsswitch.conf ld.so.cache; do
  [ ! -e /etc/$name ] || { : > $root/etc/$name; mount --bind /etc/$name $root/etc/$name; }
done
[ ! -e /etc/alternatives ] || { mkdir -p $root/etc/alternatives; mount --bind /etc/alternatives $root/etc/alternatives; }
echo 'nameserver 127.0.0.1' > $root/etc/resolv.conf
mount --rbind /usr $root/usr
mount -o remount,bind,ro $root/usr
mount -t proc proc $root/proc
# What tells interfaces that are down from others; some machines have such in every namespace.
mkdir -p $root/sys; mount -t sysfs -o ro sysfs $root/sys 2>/dev/null || true
for name in null zero full random urandom tty; do
  : > $root/dev/$name; mount --bind /dev/$name $root/dev/$name
done
ln -sfn /proc/self/fd $root/dev/fd
mkdir -p $root/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
ln -sfn pts/ptmx $root/dev/ptmx
chmod 1777 $root/tmp
while [ "$1" != -- ]; do
  mkdir -p $root$2; mount --bind $1 $root$2
  [ $3 = rw ] || mount -o remount,bind,ro $root$2
  shift 3
done
shift
ip link set lo up 2>/dev/null || true
eval "$network"
: > $up
exec unshare --user --map-user=$user --map-group=$user --root=$root --wd=$workdir "$@"
"#;

const OWN: [&str; 8] = [
    "--user",
    "--map-root-user",
    "--mount",
    "--pid",
    "--fork",
    "--net",
    "--ipc",
    "--uts",
];

/// Why there can be none here.
pub(crate) async fn lacking() -> Option<String> {
    let mut tried = Command::new("unshare");
    tried.args(OWN);
    tried.args(["unshare", "--user", "--map-user=2000", "--map-group=2000"]);
    tried.args(["nsenter", "--version"]);
    match tried.output().await {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// Where we are root, a pod is the user it asks to be, so that the kernel counts its processes.
pub(crate) fn give(path: &Path, user: u32) {
    if geteuid().is_root() {
        std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    }
}

fn as_user(program: &str, user: u32) -> Command {
    let mut command = std::process::Command::new(program);
    if geteuid().is_root() {
        command.uid(user).gid(user);
    }
    command.into()
}

impl Cell {
    pub(crate) async fn start(order: Order) -> Arc<Self> {
        for name in ["usr", "etc", "proc", "dev", "tmp", "root"] {
            fs::create_dir_all(order.root.join(name)).unwrap();
            give(&order.root.join(name), order.user);
        }
        give(&order.root, order.user);
        let up = order.root.join("tmp/.up");
        let user = order.user.to_string();
        let mut words = Vec::new();
        for mount in &order.mounts {
            words.push(mount.from.display().to_string());
            words.push(mount.to.clone());
            words.push(if mount.read_only { "ro" } else { "rw" }.to_owned());
        }
        words.push("--".to_owned());
        let mut child = as_user("unshare", order.user)
            .args(OWN)
            .args(["--propagation", "private", "--kill-child"])
            .args(["sh", "-c", BUILD, "cell"])
            .args([&order.root, &up])
            .args([user.as_str(), &order.workdir, &order.network])
            .args(words)
            .args(variables(&order.env))
            .args(&order.words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(hear(child.stdout.take().unwrap(), Arc::clone(&said)));
        let hearing = tokio::spawn(hear(child.stderr.take().unwrap(), Arc::clone(&said)));
        let (tell, exit) = watch::channel(None);
        let keeper = child.id().unwrap();
        tokio::spawn(wait(child, hearing, tell));
        while !up.exists() && exit.borrow().is_none() {
            sleep(Duration::from_millis(2)).await;
        }
        Arc::new(Self {
            order,
            keeper,
            exit,
            words: said,
        })
    }

    pub(crate) fn exit(&self) -> Option<i32> {
        *self.exit.borrow()
    }

    pub(crate) fn last_words(&self) -> String {
        String::from_utf8_lossy(&self.words.lock().unwrap()).into_owned()
    }

    /// The container's first process.
    fn first(&self) -> Option<Pid> {
        let keeper = self.keeper;
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(first) = self.first().filter(|_| self.exit().is_none()) {
            let _ = kill_process(first, signal);
        }
    }

    /// No process of it is alive afterwards.
    pub(crate) async fn kill(&self) {
        let mut exit = self.exit.clone();
        while exit.borrow_and_update().is_none() {
            self.signal(Signal::KILL);
            let _ = tokio::time::timeout(Duration::from_millis(20), exit.changed()).await;
        }
    }

    /// Another program in it.
    pub(crate) fn exec(&self, words: &[String]) -> std::io::Result<Child> {
        let keeper = self.keeper;
        let user = self.order.user;
        as_user("nsenter", user)
            .args(["--target", &keeper.to_string(), "--preserve-credentials"])
            .args(["--user", "--mount", "--net", "--ipc", "--uts"])
            .arg(format!("--pid=/proc/{keeper}/ns/pid_for_children"))
            .args(["unshare", "--user"])
            .args([format!("--map-user={user}"), format!("--map-group={user}")])
            .arg(format!("--root={}", self.order.root.display()))
            .arg(format!("--wd={}", self.order.workdir))
            .args(variables(&self.order.env))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

async fn wait(
    mut child: Child,
    hearing: tokio::task::JoinHandle<()>,
    tell: watch::Sender<Option<i32>>,
) {
    let status = child.wait().await.unwrap();
    // Its last words are there before its end is.
    let _ = tokio::time::timeout(Duration::from_secs(1), hearing).await;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    tell.send_replace(Some(code));
}

async fn hear(mut pipe: impl AsyncRead + Unpin, into: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        into.lock().unwrap().extend_from_slice(&buffer[..read]);
    }
}

/// Nothing of the test's own environment.
fn variables(env: &BTreeMap<String, String>) -> Vec<String> {
    let mut words = vec!["env".to_owned(), "-i".to_owned()];
    words.extend(env.iter().map(|(name, value)| format!("{name}={value}")));
    words
}
