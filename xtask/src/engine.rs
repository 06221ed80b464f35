//! A Docker engine: the one that answers, or one of our own.
//!
//! Ours touches nothing of the machine's: its images live under the target folder, its socket in a
//! temporary one, and it has network and mounts to itself, so that its bridges, packet rules and
//! file systems stay in there. It goes when we go, whatever the reason.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::failure::ChoreFailure;
use crate::{leftovers, machine, program, say};

/// The quick one first; the other one works on every file system.
const STORAGE_DRIVERS: [&str; 2] = ["overlay2", "vfs"];
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);

pub(crate) struct LabEngine {
    host: String,
    /// Absent when somebody else's engine answered.
    ours: Option<EngineDaemon>,
}

struct EngineDaemon {
    child: Child,
    /// Socket and run-time files. Short, because a socket's path may have 107 bytes.
    folder: PathBuf,
    /// Two engines on one data folder would spoil it; a second run waits here.
    _turn: File,
}

impl LabEngine {
    pub(crate) fn reach() -> Result<Self, ChoreFailure> {
        let named = env::var("DOCKER_HOST").ok();
        let host = named.unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned());
        if let Some(version) = version(&host) {
            say::note(&format!("{host} answers: version {version}"));
            return Ok(Self { host, ours: None });
        }
        say::note(&format!("none answers at {host}; starting one"));
        let mut last = None;
        for driver in STORAGE_DRIVERS {
            match EngineDaemon::start(driver) {
                Ok(daemon) => {
                    let host = daemon.host();
                    say::note(&format!("{host} answers, storage driver {driver}"));
                    let ours = Some(daemon);
                    return Ok(Self { host, ours });
                }
                Err(why) => {
                    say::note(&format!("storage driver {driver}: {why}"));
                    last = Some(why);
                }
            }
        }
        Err(last.expect("there is a storage driver to try"))
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn docker(&self) -> Command {
        let mut docker = Command::new("docker");
        docker.args(["--host", &self.host]);
        docker
    }
}

impl Drop for LabEngine {
    fn drop(&mut self) {
        if let Some(daemon) = self.ours.as_mut() {
            say::step("Stopping the Docker engine");
            daemon.stop();
        }
    }
}

impl EngineDaemon {
    fn start(driver: &str) -> Result<Self, ChoreFailure> {
        if !machine::is_root() {
            return Err(ChoreFailure::Lacking {
                what: "only root can start a Docker engine".to_owned(),
                remedy: "start one, or name it in DOCKER_HOST".to_owned(),
            });
        }
        let kept = machine::folder("engine")?;
        let turn = turn(&kept)?;
        let folder = leftovers::folder("engine");
        // Must not be there yet: others can write beside it.
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
        let settings = folder.join("daemon.json");
        fs::write(&settings, runtimes())
            .map_err(ChoreFailure::file("write the engine's settings"))?;
        let log = kept.join("dockerd.log");
        let child = spawn(driver, &kept, &folder, &settings, &log)?;
        let mut daemon = Self {
            child,
            folder,
            _turn: turn,
        };
        if daemon.answers_in_time() {
            return Ok(daemon);
        }
        daemon.stop();
        Err(ChoreFailure::Lacking {
            what: format!(
                "the engine does not start; its last words: {}",
                last_words(&log)
            ),
            remedy: format!("the whole story is in {}", log.display()),
        })
    }

    fn host(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    fn answers_in_time(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < START && matches!(self.child.try_wait(), Ok(None)) {
            if version(&self.host()).is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    }

    /// Asks first: an engine that is asked ends its containers too.
    fn stop(&mut self) {
        let id = self.child.id().to_string();
        program::works(Command::new("kill").args(["-TERM", &id]));
        let start = Instant::now();
        while start.elapsed() < STOP && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(100));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            say::note("it does not stop when asked: killed");
            drop(self.child.kill());
            drop(self.child.wait());
        }
        if let Err(why) = fs::remove_dir_all(&self.folder) {
            say::note(&format!("cannot remove {}: {why}", self.folder.display()));
        }
    }
}

/// gVisor too, where it is installed: by the platform that needs nothing of the host, and without a
/// network, which it refuses to look after in the network namespace of this engine.
fn runtimes() -> String {
    match machine::find("runsc") {
        Some(path) => format!(
            r#"{{"runtimes": {{"runsc": {{"path": "{}", "runtimeArgs": ["--platform=ptrace", "--network=none"]}}}}}}"#,
            path.display()
        ),
        None => "{}".to_owned(),
    }
}

fn turn(kept: &Path) -> Result<File, ChoreFailure> {
    let turn =
        File::create(kept.join("lock")).map_err(ChoreFailure::file("make the engine's lock"))?;
    if turn.try_lock().is_err() {
        say::note("another run has its engine on; waiting for its end");
        turn.lock()
            .map_err(ChoreFailure::file("lock the engine's folder"))?;
    }
    Ok(turn)
}

fn spawn(
    driver: &str,
    kept: &Path,
    folder: &Path,
    settings: &Path,
    log: &Path,
) -> Result<Child, ChoreFailure> {
    let log = File::create(log).map_err(ChoreFailure::file("write the engine's log"))?;
    let errors = log
        .try_clone()
        .map_err(ChoreFailure::file("write the engine's log"))?;
    let mut command = Command::new("setpriv");
    command
        // Our end is its end, also when we are killed. The signal is tied to the thread that
        // starts it, which is our only one.
        .args(["--pdeathsig", "TERM", "--", "unshare", "--net"])
        // Its mounts are its own, so that none is left of one that was killed.
        .args(["--mount", "--propagation", "slave", "--"])
        .args(["sh", "-c", "ip link set lo up; exec dockerd \"$@\"", "sh"])
        .arg("--config-file")
        .arg(settings)
        .arg("--data-root")
        .arg(kept.join(driver))
        .arg("--exec-root")
        .arg(folder.join("run"))
        .arg("--pidfile")
        .arg(folder.join("pid"))
        .arg("--host")
        .arg(format!("unix://{}", folder.join("docker.sock").display()))
        .args(["--storage-driver", driver])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    command.spawn().map_err(|source| ChoreFailure::Start {
        line: program::line(&command),
        source,
    })
}

fn version(host: &str) -> Option<String> {
    let mut docker = Command::new("docker");
    docker.args(["--host", host, "version", "--format", "{{.Server.Version}}"]);
    let output = program::listen(&mut docker).ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("none").to_owned()
}
