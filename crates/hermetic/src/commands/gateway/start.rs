//! `hermetic gateway start`: by systemd where it is installed there, otherwise as a plain daemon.
//!
//! A process with threads cannot fork safely, so the daemon is this program started once more. It
//! leaves our terminal by itself, and its stdout is a pipe to us that says one thing: that it is
//! ready. The pipe closing without a word means that it ended.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hermetic_config::{Home, resolve_gateway_backend};

use super::chronicle::READY;
use crate::cli::{Cli, LogFormat};
use crate::commands::load;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway_state::{Seen, look, make_folder};
use crate::output;
use crate::service::Service;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Wait this long until it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE)]
    timeout: u64,
}

const PATIENCE: u64 = 60;
/// A log that is larger is put aside at the next start; one old one is kept.
const LOG_BYTES: u64 = 16 << 20;
const LAST_LINES: usize = 20;
/// What is read of a log to show its end.
const TAIL_BYTES: u64 = 16 << 10;

impl Default for Args {
    fn default() -> Self {
        Self { timeout: PATIENCE }
    }
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    // Read here as well, so that a mistake is shown where it can be mended, not in a log.
    let config = load(cli)?;
    resolve_gateway_backend(&config)?;
    let home = config.home();
    if let Seen::Running(state) = look(home) {
        let pid = state.map_or_else(String::new, |state| format!(" (pid {})", state.pid));
        output::print(&format!("the gateway runs already{pid}\n"))?;
        return Ok(Exit::Ok);
    }
    if let Some(service) = Service::installed(home)? {
        service.tell(&["start"])?;
        output::print(&format!("started {}\n", service.name))?;
        return Ok(Exit::Ok);
    }
    let log = log_path(home);
    let mut child = spawn(cli, home, &log)?;
    match wait(&mut child, Duration::from_secs(args.timeout)) {
        Waited::Ready => {
            output::print(&format!(
                "started (pid {}); its log is {}\n",
                child.id(),
                log.display()
            ))?;
            Ok(Exit::Ok)
        }
        Waited::Ended(how) => Err(Failure::new(
            format!(
                "the gateway {how} before it was ready\n{}",
                last_lines(&log)
            ),
            format!("its whole log is {}", log.display()),
        )),
        Waited::TooLong => Err(Failure::new(
            format!(
                "the gateway is not ready after {} s and goes on trying\n{}",
                args.timeout,
                last_lines(&log)
            ),
            format!(
                "watch {}, or end it with `hermetic gateway stop`",
                log.display()
            ),
        )),
    }
}

pub(super) fn log_path(home: &Home) -> PathBuf {
    home.state().join("gateway.log")
}

fn spawn(cli: &Cli, home: &Home, log: &Path) -> Result<Child, Failure> {
    let log = open_log(home, log)?;
    let program =
        std::env::current_exe().map_err(|error| Failure::caused(&error, "is /proc mounted?"))?;
    let mut command = Command::new(program);
    command.arg("--home").arg(home.root());
    command.args((0..cli.verbose).map(|_| "--verbose"));
    if cli.log_format == LogFormat::Json {
        command.args(["--log-format", "json"]);
    }
    command
        .args(["gateway", "run", "--detached"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    command
        .spawn()
        .map_err(|error| Failure::caused(&error, "free some memory or processes"))
}

fn open_log(home: &Home, path: &Path) -> Result<File, Failure> {
    make_folder(&home.state()).map_err(|error| Failure::file("make", &home.state(), &error))?;
    if fs::metadata(path).is_ok_and(|log| log.len() > LOG_BYTES) {
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::file("write", path, &error))
}

enum Waited {
    Ready,
    Ended(String),
    TooLong,
}

fn wait(child: &mut Child, patience: Duration) -> Waited {
    let Some(stdout) = child.stdout.take() else {
        return Waited::TooLong;
    };
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = tell.send(line == READY);
    });
    match told.recv_timeout(patience) {
        Ok(true) => Waited::Ready,
        Ok(false) => Waited::Ended(match child.wait() {
            Ok(status) => format!("ended ({status})"),
            Err(error) => format!("was lost ({error})"),
        }),
        Err(_) => Waited::TooLong,
    }
}

fn last_lines(path: &Path) -> String {
    let tail = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = tail().unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LAST_LINES)..];
    shown
        .iter()
        .map(|line| format!("  | {line}\n"))
        .collect::<String>()
        .trim_end()
        .to_owned()
}
