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

use hermetic_config::{HomeFolder, resolve_gateway_backend};

use super::state_recorder::READY;
use crate::cli::{CommandLine, LogFormat};
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look, make_folder};
use crate::output;
use crate::service::SystemdService;

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayStartArgs {
    /// Wait this long until it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = START_TIMEOUT_SECONDS)]
    timeout: u64,
}

const START_TIMEOUT_SECONDS: u64 = 60;
/// A log that is larger is put aside at the next start; one old one is kept.
const LOG_BYTES: u64 = 16 << 20;
const LAST_LINES: usize = 20;
/// What is read of a log to show its end.
const TAIL_BYTES: u64 = 16 << 10;

impl Default for GatewayStartArgs {
    fn default() -> Self {
        Self {
            timeout: START_TIMEOUT_SECONDS,
        }
    }
}

pub(crate) fn run(
    cli: &CommandLine,
    args: &GatewayStartArgs,
) -> Result<ExitReason, CommandFailure> {
    // Read here as well, so that a mistake is shown where it can be mended, not in a log.
    let config = load(cli)?;
    resolve_gateway_backend(&config)?;
    let home = config.home();
    if let ObservedGateway::Running(state) = look(home) {
        let pid = state.map_or_else(String::new, |state| format!(" (pid {})", state.pid));
        output::print(&format!("the gateway runs already{pid}\n"))?;
        return Ok(ExitReason::Ok);
    }
    if let Some(service) = SystemdService::installed(home)? {
        service.tell(&["start"])?;
        output::print(&format!("started {}\n", service.name))?;
        return Ok(ExitReason::Ok);
    }
    let log = log_path(home);
    let mut child = spawn(cli, home, &log)?;
    match wait(&mut child, Duration::from_secs(args.timeout)) {
        StartOutcome::Ready => {
            output::print(&format!(
                "started (pid {}); its log is {}\n",
                child.id(),
                log.display()
            ))?;
            Ok(ExitReason::Ok)
        }
        StartOutcome::Ended(how) => Err(CommandFailure::new(
            format!(
                "the gateway {how} before it was ready\n{}",
                last_lines(&log)
            ),
            format!("its whole log is {}", log.display()),
        )),
        StartOutcome::TooLong => Err(CommandFailure::new(
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

pub(super) fn log_path(home: &HomeFolder) -> PathBuf {
    home.state().join("gateway.log")
}

fn spawn(cli: &CommandLine, home: &HomeFolder, log: &Path) -> Result<Child, CommandFailure> {
    let log = open_log(home, log)?;
    let program = std::env::current_exe()
        .map_err(|error| CommandFailure::caused(&error, "is /proc mounted?"))?;
    let mut command = Command::new(program);
    command.arg("--home").arg(home.root());
    command.args((0..cli.global.verbose).map(|_| "--verbose"));
    if cli.global.log_format == LogFormat::Json {
        command.args(["--log-format", "json"]);
    }
    command
        .args(["gateway", "run", "--detached"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    command
        .spawn()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))
}

fn open_log(home: &HomeFolder, path: &Path) -> Result<File, CommandFailure> {
    make_folder(&home.state())
        .map_err(|error| CommandFailure::file("make", &home.state(), &error))?;
    if fs::metadata(path).is_ok_and(|log| log.len() > LOG_BYTES) {
        // Where that fails the log grows on, which is no reason not to start.
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| CommandFailure::file("write", path, &error))
}

enum StartOutcome {
    Ready,
    Ended(String),
    TooLong,
}

fn wait(child: &mut Child, patience: Duration) -> StartOutcome {
    let Some(stdout) = child.stdout.take() else {
        return StartOutcome::TooLong;
    };
    let (tell, told) = mpsc::channel();
    // In a thread: a read of a pipe knows no timeout, a channel does.
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = tell.send(line == READY);
    });
    match told.recv_timeout(patience) {
        Ok(true) => StartOutcome::Ready,
        // Its output has ended without the word, so it has ended or is about to.
        Ok(false) => StartOutcome::Ended(match child.wait() {
            Ok(status) => format!("ended ({status})"),
            Err(error) => format!("was lost ({error})"),
        }),
        Err(_) => StartOutcome::TooLong,
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
