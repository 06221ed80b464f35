//! Other programs: run, shown before they run, never given our input.

use std::process::{Command, Output, Stdio};

use crate::failure::ChoreFailure;
use crate::say;

/// Runs it with its output in front of the person.
pub(crate) fn show(command: &mut Command) -> Result<(), ChoreFailure> {
    let line = line(command);
    say::note(&format!("$ {line}"));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|source| ChoreFailure::Start {
            line: line.clone(),
            source,
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(ChoreFailure::Ended { line, status })
    }
}

/// Runs it and keeps what it says.
pub(crate) fn listen(command: &mut Command) -> Result<Output, ChoreFailure> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ChoreFailure::Start {
            line: line(command),
            source,
        })
}

/// Whether it starts and succeeds.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    // `cargo` comes with its full path from the cargo that started us; nobody types that.
    let program = program.rsplit('/').next().unwrap_or_default();
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(program.into())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}
