//! The project's own chores. `cargo xtask help` lists them.
//!
//! No dependencies: this is the first thing a newcomer compiles, and the only thing that runs
//! before anything was installed.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program for a person at a terminal")]

mod apptainer;
mod apt;
mod arguments;
mod bench;
mod build_times;
mod cargo_tools;
mod check;
mod compose;
mod dist;
mod docker;
mod doctests;
mod engine;
mod failure;
mod fuzz;
mod image;
mod leftovers;
mod machine;
mod members;
mod needs;
mod packages;
mod pictures;
mod plain_user;
mod program;
mod results;
mod say;
mod singularity;
mod synapse;
mod test;
mod time_table;
mod vm;

use std::env;
use std::process::ExitCode;

use arguments::XtaskChore;
use failure::ChoreFailure;

fn main() -> ExitCode {
    match XtaskChore::parse(env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say::end(&format!("failed: {failure}"));
            failure.exit_code()
        }
    }
}

fn run(chore: XtaskChore) -> Result<(), ChoreFailure> {
    match chore {
        XtaskChore::Test(options) => test::run(&options),
        XtaskChore::Check => check::run(),
        XtaskChore::Bench { rest } => bench::run(&rest),
        XtaskChore::Docker { command } => docker::run(&command),
        XtaskChore::Fuzz(options) => fuzz::run(&options),
        XtaskChore::BuildTimes => build_times::run(),
        XtaskChore::Vm(options) => vm::run(&options),
        XtaskChore::Dist(options) => dist::run(&options),
        XtaskChore::Pictures { program } => pictures::run(program.as_deref()),
        XtaskChore::Help => {
            say::plain(arguments::HELP);
            Ok(())
        }
    }
}
