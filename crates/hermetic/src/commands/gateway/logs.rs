//! `hermetic gateway logs`: where a gateway said something, and the end of it.

use std::fs;
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::start::log_path;
use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;
use crate::service::{SystemdScope, SystemdService};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A gateway that systemd keeps logs to the journal, one that `hermetic gateway start` started to a file in \
its home, and one that runs in a terminal to that terminal only.")]
pub(crate) struct GatewayLogsArgs {
    /// Show this many lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    lines: usize,
    /// Go on showing what is added, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// How often a file is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

pub(crate) fn run(cli: &CommandLine, args: &GatewayLogsArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    if let Some(service) = SystemdService::installed(config.home())? {
        return Err(journal(&service, args));
    }
    let path = log_path(config.home());
    match show(&path, args) {
        Ok(()) => Ok(ExitReason::Ok),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CommandFailure::new(
            "no gateway of this home was started in the background",
            "`hermetic gateway start` logs to a file, `hermetic gateway run` to its terminal",
        )),
        Err(error) => Err(CommandFailure::file("read", &path, &error)),
    }
}

/// Becomes `journalctl`; it returns only where it cannot.
fn journal(service: &SystemdService, args: &GatewayLogsArgs) -> CommandFailure {
    let mut command = Command::new("journalctl");
    if service.keeper == SystemdScope::User {
        command.arg("--user");
    }
    command.args(["--unit", &service.name, "--lines", &args.lines.to_string()]);
    if args.follow {
        command.arg("--follow");
    }
    let error = command.exec();
    CommandFailure::caused(&error, "is journalctl there, and may you read the journal?")
}

/// The last lines, and then what is added. A file that a restart began anew is read from its start.
fn show(path: &Path, args: &GatewayLogsArgs) -> io::Result<()> {
    let mut file = BufReader::new(fs::File::open(path)?);
    let mut last = std::collections::VecDeque::new();
    let mut read = 0;
    while let Some((line, bytes)) = next_line(&mut file)? {
        read += bytes;
        last.push_back(line);
        if last.len() > args.lines {
            last.pop_front();
        }
    }
    let text: String = last.into_iter().collect();
    print(&text)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        thread::sleep(LOOK_AGAIN);
        if fs::metadata(path)?.len() < read {
            file = BufReader::new(fs::File::open(path)?);
            read = 0;
        }
        file.seek(SeekFrom::Start(read))?;
        while let Some((line, bytes)) = next_line(&mut file)? {
            read += bytes;
            print(&line)?;
        }
    }
}

fn next_line(file: &mut impl io::BufRead) -> io::Result<Option<(String, u64)>> {
    let mut line = Vec::new();
    let bytes = file.read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line).into_owned();
    Ok((bytes > 0).then_some((text, bytes as u64)))
}

fn print(text: &str) -> io::Result<()> {
    output::print(text).map_err(|failure| io::Error::other(failure.to_string()))
}
