//! The side in the sandbox. It says on stdout what it found.

mod itself;
mod kernel;
mod limits;
mod network;
mod others;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::{AttackFinding, AttackOrder};

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;

/// A system call by name, and the error it ended in; none if it did what it was asked.
pub type KnockedCall = (&'static str, Option<i32>);

/// `knock` tries the calls for which no safe crate has a function.
pub fn main(words: impl Iterator<Item = OsString>, knock: fn() -> Vec<KnockedCall>) -> ExitCode {
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let Some(order) = AttackOrder::read(words) else {
        return ExitCode::from(USAGE);
    };
    match order {
        AttackOrder::Try { host, neighbour } => {
            for finding in [
                itself::findings(),
                kernel::findings(&knock()),
                network::findings(),
                others::findings(&host, "the host"),
                others::findings(&neighbour, "a neighbour"),
            ]
            .into_iter()
            .flatten()
            {
                say(&finding);
            }
        }
        AttackOrder::LieInWait { token } => return others::lie_in_wait(&token),
        AttackOrder::Breed { count } => say(&limits::breed(count)),
        AttackOrder::Eat { bytes } => say(&limits::eat(bytes)),
        AttackOrder::Hold { count } => say(&limits::hold(count)),
    }
    ExitCode::SUCCESS
}

fn say(finding: &AttackFinding) {
    // Nobody there to hear it is nobody to tell.
    let _ = std::io::stdout().write_all(finding.line().as_bytes());
}
