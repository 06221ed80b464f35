//! Whether a person started this program, and not something that the agent runs.
//!
//! On a backend that is no boundary the agent's commands run as the operator's own user, and could
//! call this very program to answer their own question. The policy asks about such a command; this is
//! the second lock: whatever has one of our wardens or the gateway among its ancestors is refused.
//! It is no boundary either, only a sealed backend is one.

use std::fs;

use hermetic_config::{Config, HomeFolder};

use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look};

/// More generations are no accident.
const MOST_ANCESTORS: usize = 256;

pub(crate) fn or_refuse(config: &Config) -> Result<(), CommandFailure> {
    or_refuse_in(config.home())
}

/// The same, where no configuration was read.
pub(crate) fn or_refuse_in(home: &HomeFolder) -> Result<(), CommandFailure> {
    let gateway = match look(home) {
        ObservedGateway::Running(Some(state)) => Some(state.pid),
        _ => None,
    };
    let mut pid = std::process::id();
    for _ in 0..MOST_ANCESTORS {
        let Some(parent) = parent(pid) else {
            return Ok(());
        };
        if Some(parent) == gateway || is_warden(parent) {
            return Err(refused());
        }
        pid = parent;
    }
    Err(refused())
}

/// Who answers, for the record.
pub(crate) fn who() -> String {
    let uid = rustix::process::getuid().as_raw();
    format!("the command line (uid {uid})")
}

fn refused() -> CommandFailure {
    CommandFailure::new(
        "a command that the agent runs cannot answer for a person",
        "answer in the chat, or do it from a shell of your own",
    )
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 0)
}

/// A warden gives itself a name, and runs from memory and not from a file; the second can be seen by
/// root only.
fn is_warden(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_end() == "hermetic-warden")
        || fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.to_string_lossy().starts_with("/memfd:warden"))
}
