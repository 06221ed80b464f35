//! What can be said about the code without running it.

use crate::cargo_tools::{DENY, NEXTEST};
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// Every check runs, also after one that failed: a person mends them in one go.
pub(crate) fn run() -> Result<(), ChoreFailure> {
    let mut bad = Vec::new();
    say::step("Formatting");
    take(&mut bad, cargo(&["fmt", "--all", "--check"]));

    say::step("Dependencies: bans, licences, sources");
    DENY.provide()?;
    take(&mut bad, cargo(&DENY_CHECK));
    let advisories = take(&mut bad, advisories());

    say::step("Lints");
    take(&mut bad, cargo(&CLIPPY));

    say::step("Dependency arrows, and documents that name what exists");
    NEXTEST.provide()?;
    take(&mut bad, cargo(&SHAPE));

    if !bad.is_empty() {
        return Err(ChoreFailure::Bad(bad));
    }
    say::end(match advisories {
        Some(AdvisoryCheck::Clean) => "All checks are in order.",
        _ => "All checks are in order; advisories were NOT checked.",
    });
    Ok(())
}

const DENY_CHECK: [&str; 8] = [
    "deny",
    "--workspace",
    "--locked",
    "check",
    "--hide-inclusion-graph",
    "bans",
    "licenses",
    "sources",
];

const CLIPPY: [&str; 7] = [
    "clippy",
    "--workspace",
    "--all-targets",
    "--locked",
    "--",
    "--deny",
    "warnings",
];

const SHAPE: [&str; 6] = [
    "nextest",
    "run",
    "--package",
    "hermetic-promises",
    "arrows::",
    "documents::",
];

fn cargo(words: &[&str]) -> Result<(), ChoreFailure> {
    program::show(machine::cargo().args(words))
}

fn take<T>(bad: &mut Vec<String>, outcome: Result<T, ChoreFailure>) -> Option<T> {
    outcome.map_err(|why| bad.push(why.to_string())).ok()
}

enum AdvisoryCheck {
    Clean,
    Unreachable,
}

/// Known holes in dependencies. Their list is fetched, and a machine may be cut off from it.
fn advisories() -> Result<AdvisoryCheck, ChoreFailure> {
    say::step("Dependencies: advisories");
    let mut command = machine::cargo();
    command.args(["deny", "--workspace", "--locked", "check", "advisories"]);
    let output = program::listen(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        say::note("none known");
        return Ok(AdvisoryCheck::Clean);
    }
    if said.contains("failed to fetch advisory database") {
        say::note("SKIPPED: the advisory database cannot be reached from here");
        return Ok(AdvisoryCheck::Unreachable);
    }
    say::plain(&said);
    Err(ChoreFailure::Ended {
        line: program::line(&command),
        status: output.status,
    })
}
