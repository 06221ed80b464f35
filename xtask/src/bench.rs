//! Every bench there is. Nothing is stored: `docs/performance.md` is written by a person.

use crate::failure::ChoreFailure;
use crate::{machine, members, program, say};

pub(crate) fn run(rest: &[String]) -> Result<(), ChoreFailure> {
    let mut members = members::all()?;
    members.retain(|member| member.has_benches);
    if members.is_empty() {
        say::step("No package has a bench yet.");
        return Ok(());
    }
    say::step("Benches");
    let mut command = machine::cargo();
    command.arg("bench");
    for member in &members {
        command.args(["--package", &member.name]);
    }
    // Only benches: the test harness of a library does not know a bench's arguments.
    command.args(["--benches", "--"]).args(rest);
    program::show(&mut command)
}
