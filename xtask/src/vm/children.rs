//! Programs that a machine needs on this side, and that end with us.

use std::process::{Child, Command, Stdio};

use crate::failure::ChoreFailure;
use crate::program;

/// A program that the kernel ends when we end, whatever ends us.
pub(crate) fn with_us(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Starts it with nothing to read, and nobody listening.
pub(crate) fn spawn(command: &mut Command) -> Result<Child, ChoreFailure> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|source| ChoreFailure::Start {
            line: program::line(command),
            source,
        })
}
