//! One sandbox of the test's own: namespaces, a folder as root, and nothing else of this machine but
//! `/usr` to read.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hermetic_modal::wire::{GenericResult, GenericStatus, Sandbox, SandboxTag};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::Status;

use super::process::Process;
use super::wire::Exit;

pub(crate) struct Cell {
    pub(crate) id: String,
    pub(crate) task: String,
    pub(crate) app: String,
    pub(crate) definition: Sandbox,
    pub(crate) created_at: f64,
    pub(crate) tags: Mutex<Vec<SandboxTag>>,
    pub(crate) execs: Mutex<HashMap<String, Arc<Process>>>,
    pub(crate) entry: Arc<Process>,
    /// How it ends, decided before anything is killed: whoever kills first has the word.
    verdict: OnceLock<GenericResult>,
    result: watch::Sender<Option<GenericResult>>,
    touched: Mutex<Instant>,
    root: PathBuf,
}

/// Makes the root and becomes the entrypoint. `$1` is the root, `$2` a file that says it stands.
const BUILD: &str = r#"
set -e
root=$1; up=$2; shift 2
mkdir -p $root/usr $root/etc $root/proc $root/dev $root/tmp $root/root
for name in bin sbin lib lib32 lib64; do
  [ ! -L /$name ] || ln -sfn usr/$name $root/$name
done
for name in passwd group hosts nsswitch.conf ld.so.cache alternatives; do
  [ ! -e /etc/$name ] || [ -e $root/etc/$name ] || cp -RP --preserve=mode /etc/$name $root/etc/
done
mount --rbind /usr $root/usr
mount -o remount,bind,ro $root/usr
mount -t proc proc $root/proc
for name in null zero full random urandom tty; do
  : > $root/dev/$name; mount --bind /dev/$name $root/dev/$name
done
ln -sfn /proc/self/fd $root/dev/fd
mkdir -p $root/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
ln -sfn pts/ptmx $root/dev/ptmx
chmod 1777 $root/tmp
ip link set lo up 2>/dev/null || true
: > $up
exec unshare --root=$root --wd=/ "$@"
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
    tried.args(OWN).args(["nsenter", "--version"]);
    match tried.output().await {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) app: String,
    pub(crate) definition: Sandbox,
    pub(crate) tags: Vec<SandboxTag>,
    pub(crate) env: HashMap<String, String>,
    pub(crate) created_at: f64,
    /// Files of a snapshot, or nothing.
    pub(crate) files: Option<PathBuf>,
    pub(crate) root: PathBuf,
}

impl Cell {
    pub(crate) async fn start(order: Order) -> Result<Arc<Self>, Status> {
        let root = order.root;
        if let Some(files) = &order.files {
            copy(files, &root).await?;
        }
        let up = root.with_extension("up");
        let entry = Process::start(
            Command::new("unshare")
                .args(OWN)
                .args(["--propagation", "private", "--kill-child"])
                .args(["sh", "-c", BUILD, "cell"])
                .args([&root, &up])
                .args(variables(&order.env))
                .args(&order.definition.entrypoint_args),
        );
        let entry = entry.map_err(|error| Status::internal(error.to_string()))?;
        while !up.exists() {
            if entry.is_over() {
                let said = entry.stderr.whole();
                return Err(Status::internal(format!("no cell can be built: {said}")));
            }
            sleep(Duration::from_millis(5)).await;
        }
        let task = order.id.replace("sb-", "ta-") + "V";
        let cell = Arc::new(Self {
            id: order.id,
            task,
            app: order.app,
            definition: order.definition,
            created_at: order.created_at,
            tags: Mutex::new(order.tags),
            execs: Mutex::default(),
            entry,
            verdict: OnceLock::new(),
            result: watch::Sender::new(None),
            touched: Mutex::new(Instant::now()),
            root,
        });
        tokio::spawn(Arc::clone(&cell).until_its_end());
        Ok(cell)
    }

    /// Ends it when its program ended, when it is idle for too long, and in any case in time.
    async fn until_its_end(self: Arc<Self>) {
        let whole = Duration::from_secs(u64::from(self.definition.timeout_secs));
        let idle = self
            .definition
            .idle_timeout_secs
            .map(u64::from)
            .map(Duration::from_secs);
        let idle_too_long = async {
            let Some(idle) = idle else {
                return std::future::pending().await;
            };
            while self.idle_for() < idle {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let mut result = self.result.subscribe();
        let (status, exitcode) = tokio::select! {
            exit = self.entry.ended() => match exit {
                Exit::Code(0) => (GenericStatus::Success, 0),
                Exit::Code(code) => (GenericStatus::Failure, code),
                Exit::Signal(signal) => (GenericStatus::Failure, 128 + signal),
            },
            () = sleep(whole) => (GenericStatus::Timeout, 124),
            () = idle_too_long => (GenericStatus::IdleTimeout, 137),
            _ = result.wait_for(Option::is_some) => return,
        };
        self.end(status, exitcode).await;
    }

    fn idle_for(&self) -> Duration {
        let busy = self
            .execs
            .lock()
            .unwrap()
            .values()
            .any(|exec| !exec.is_over());
        let mut touched = self.touched.lock().unwrap();
        if busy {
            *touched = Instant::now();
        }
        touched.elapsed()
    }

    pub(crate) fn touch(&self) {
        *self.touched.lock().unwrap() = Instant::now();
    }

    /// No process of it is alive afterwards.
    pub(crate) async fn end(&self, status: GenericStatus, exitcode: i32) {
        let verdict = self.verdict.get_or_init(|| GenericResult {
            status: status.into(),
            exitcode,
            ..GenericResult::default()
        });
        if let Some(first) = self.first() {
            let pid = rustix::process::Pid::from_raw(first).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.entry.ended().await;
        let execs: Vec<_> = self.execs.lock().unwrap().values().cloned().collect();
        for exec in execs {
            exec.ended().await;
        }
        let _ = fs::remove_dir_all(&self.root);
        self.result.send_if_modified(|result| {
            let first = result.is_none();
            result.get_or_insert_with(|| verdict.clone());
            first
        });
    }

    /// The process that is pid 1 inside.
    fn first(&self) -> Option<i32> {
        let pid = self.entry.pid;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    pub(crate) fn result(&self) -> watch::Receiver<Option<GenericResult>> {
        self.result.subscribe()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.result.borrow().is_some()
    }

    pub(crate) fn exec(&self, id: &str, words: &[String]) -> Result<(), Status> {
        let first = self
            .first()
            .ok_or_else(|| Status::not_found("it is over"))?;
        let mut execs = self.execs.lock().unwrap();
        if execs.contains_key(id) {
            return Ok(());
        }
        let process = Process::start(
            Command::new("nsenter")
                .args(["--target", &first.to_string(), "--preserve-credentials"])
                .args(["--user", "--mount", "--pid", "--net", "--ipc", "--uts"])
                .arg("unshare")
                .arg(format!("--root={}", self.root.display()))
                .arg("--wd=/")
                .args(variables(&HashMap::new()))
                .args(words),
        );
        let process = process.map_err(|error| Status::internal(error.to_string()))?;
        execs.insert(id.to_owned(), process);
        Ok(())
    }

    /// Its files, as they are now.
    pub(crate) async fn snapshot(&self, to: &Path) -> Result<(), Status> {
        copy(&self.root, to).await
    }
}

async fn copy(from: &Path, to: &Path) -> Result<(), Status> {
    let copied = Command::new("cp").arg("-a").args([from, to]).output().await;
    match copied {
        Ok(done) if done.status.success() => Ok(()),
        other => Err(Status::internal(format!("{other:?}"))),
    }
}

/// Nothing of the test's own environment.
fn variables(env: &HashMap<String, String>) -> Vec<String> {
    let mut words: Vec<_> = [
        "env",
        "-i",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(env.iter().map(|(name, value)| format!("{name}={value}")));
    words
}
