//! What can be said about the code without running it.

use crate::cargo_tools::{DENY, NEXTEST};
use crate::failure::Failure;
use crate::{machine, program, say};

pub(crate) fn run() -> Result<(), Failure> {
    say::step("Formatting");
    program::show(machine::cargo().args(["fmt", "--all", "--check"]))?;

    say::step("Dependencies: bans, licences, sources");
    DENY.provide()?;
    program::show(machine::cargo().args([
        "deny",
        "--workspace",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))?;
    let advisories = advisories()?;

    say::step("Lints");
    program::show(machine::cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "--deny",
        "warnings",
    ]))?;

    say::step("Dependency arrows, and documents that name what exists");
    NEXTEST.provide()?;
    program::show(machine::cargo().args([
        "nextest",
        "run",
        "--package",
        "hermetic-promises",
        "arrows::",
        "documents::",
    ]))?;

    say::end(match advisories {
        Advisories::Clean => "Formatting, dependencies, lints and arrows are in order.",
        Advisories::Unreachable => {
            "Formatting, dependencies, lints and arrows are in order; advisories were NOT checked."
        }
    });
    Ok(())
}

enum Advisories {
    Clean,
    Unreachable,
}

/// Known holes in dependencies. Their list is fetched, and a machine may be cut off from it.
fn advisories() -> Result<Advisories, Failure> {
    say::step("Dependencies: advisories");
    let mut command = machine::cargo();
    command.args(["deny", "--workspace", "--locked", "check", "advisories"]);
    let output = program::listen(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        say::note("none known");
        return Ok(Advisories::Clean);
    }
    if said.contains("failed to fetch advisory database") {
        say::note("SKIPPED: the advisory database cannot be reached from here");
        return Ok(Advisories::Unreachable);
    }
    say::plain(&said);
    Err(Failure::Ended {
        line: program::line(&command),
        status: output.status,
    })
}
