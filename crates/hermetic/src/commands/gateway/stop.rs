//! `hermetic gateway stop`: asks it to end and waits until it is gone.
//!
//! A number of a process may belong to another one by the time it is used. The process is held by a
//! descriptor first, and then it is checked that it is the one that described itself.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hermetic_config::HomeFolder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayState, ObservedGateway, look};
use crate::output;
use crate::service::SystemdService;

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayStopArgs {
    /// Wait this long, in addition to agent.restart_drain_timeout
    #[arg(long, value_name = "SECONDS", default_value_t = STOP_TIMEOUT_SECONDS)]
    timeout: u64,
    /// Kill it if it is not gone by then; the next start cleans up after it
    #[arg(long)]
    force: bool,
}

const STOP_TIMEOUT_SECONDS: u64 = 60;

impl Default for GatewayStopArgs {
    fn default() -> Self {
        Self {
            timeout: STOP_TIMEOUT_SECONDS,
            force: false,
        }
    }
}

pub(crate) fn run(cli: &CommandLine, args: &GatewayStopArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let patience = config.agent().drain_timeout + Duration::from_secs(args.timeout);
    match look(config.home()) {
        ObservedGateway::Stopped(_) => output::print("no gateway runs for this home\n")?,
        ObservedGateway::Unknown(error) => {
            return Err(CommandFailure::file(
                "look at",
                &config.home().state().join("gateway.lock"),
                &error,
            ));
        }
        ObservedGateway::Running(state) => {
            let state = match state {
                Some(state) => state,
                None => described(config.home())?,
            };
            match state.service.as_deref().and_then(SystemdService::read) {
                Some(service) => service.tell(&["stop"])?,
                None => end(&state, patience, args.force)?,
            }
            still_there(config.home(), &state)?;
            output::print(&format!("stopped (pid {})\n", state.pid))?;
        }
    }
    Ok(ExitReason::Ok)
}

/// It takes the lock before it describes itself; the two are a moment apart.
fn described(home: &HomeFolder) -> Result<GatewayState, CommandFailure> {
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if let ObservedGateway::Running(Some(state)) = look(home) {
            return Ok(state);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(CommandFailure::new(
        "a gateway holds the lock of this home and does not say which process it is",
        format!(
            "`fuser {}` tells",
            home.state().join("gateway.lock").display()
        ),
    ))
}

/// The lock has the last word.
fn still_there(home: &HomeFolder, ended: &GatewayState) -> Result<(), CommandFailure> {
    match look(home) {
        ObservedGateway::Running(Some(state)) if state.run == ended.run => {
            Err(CommandFailure::new(
                format!(
                    "pid {} is not the gateway it says it is, and the lock of this home is still held",
                    state.pid
                ),
                format!(
                    "`fuser {}` tells by whom",
                    home.state().join("gateway.lock").display()
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn end(state: &GatewayState, patience: Duration, force: bool) -> Result<(), CommandFailure> {
    let Some(process) = hold(state)? else {
        return Ok(());
    };
    signal(&process, state, Signal::TERM)?;
    if gone(&process, patience)? {
        return Ok(());
    }
    if !force {
        return Err(CommandFailure::new(
            format!(
                "pid {} is not gone after {} s",
                state.pid,
                patience.as_secs()
            ),
            "wait, or kill it with `hermetic gateway stop --force`",
        ));
    }
    signal(&process, state, Signal::KILL)?;
    gone(&process, Duration::from_secs(10)).map(drop)
}

/// `None` if that process is gone.
fn hold(state: &GatewayState) -> Result<Option<OwnedFd>, CommandFailure> {
    let pid = i32::try_from(state.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => Ok(state.is_of_living().then_some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(refused("find", state, error)),
    }
}

fn signal(process: &OwnedFd, state: &GatewayState, signal: Signal) -> Result<(), CommandFailure> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(refused("end", state, error)),
    }
}

fn gone(process: &OwnedFd, patience: Duration) -> Result<bool, CommandFailure> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut polled, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(CommandFailure::caused(&error, "try again")),
        }
    }
}

fn refused(verb: &str, state: &GatewayState, error: Errno) -> CommandFailure {
    CommandFailure::new(
        format!("cannot {verb} pid {}: {error}", state.pid),
        "do it as the user who started it",
    )
}
