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
mod plain_user;
mod program;
mod results;
mod say;
mod singularity;
mod test;
mod vm;

use std::env;
use std::process::ExitCode;

use arguments::Chore;
use failure::Failure;

fn main() -> ExitCode {
    match Chore::parse(env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say::end(&format!("failed: {failure}"));
            failure.exit_code()
        }
    }
}

fn run(chore: Chore) -> Result<(), Failure> {
    match chore {
        Chore::Test(options) => test::run(&options),
        Chore::Check => check::run(),
        Chore::Bench { rest } => bench::run(&rest),
        Chore::Docker { command } => docker::run(&command),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::BuildTimes => build_times::run(),
        Chore::Vm(options) => vm::run(&options),
        Chore::Help => {
            say::plain(arguments::HELP);
            Ok(())
        }
    }
}
