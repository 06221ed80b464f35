//! Debian's package tool, made to ask nothing and to try again.

use std::process::Command;

use crate::failure::ChoreFailure;
use crate::{program, say};

/// A mirror that is being updated fails for a moment; each further try reads its lists anew.
const TRIES: u32 = 3;

/// Knows whether the package lists are fresh.
#[derive(Default)]
pub(crate) struct AptPackages {
    updated: bool,
}

impl AptPackages {
    pub(crate) fn install(&mut self, package: &str) -> Result<(), ChoreFailure> {
        let mut attempt = 1;
        loop {
            let outcome = self.try_install(package);
            match outcome {
                Err(why) if attempt < TRIES => {
                    attempt += 1;
                    say::note(&format!("{why}; try {attempt} of {TRIES}"));
                    self.updated = false;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_install(&mut self, package: &str) -> Result<(), ChoreFailure> {
        if !self.updated {
            program::show(&mut apt_get(&["update"]))?;
            self.updated = true;
        }
        program::show(&mut apt_get(&[
            "install",
            "--no-install-recommends",
            package,
        ]))
    }
}

fn apt_get(words: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-q", "-y", "-o", "Acquire::Retries=3"])
        // Somebody else's installation ends sooner or later.
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(words);
    command
}
