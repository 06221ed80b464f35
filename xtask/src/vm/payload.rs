//! What is carried into a machine: our programs, as a archive on a disk of their own.
//!
//! A disk is read at the emulator's full speed; a copy over ssh would cost the machine's one slow
//! processor a minute of encryption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::image;
use crate::arguments::VmOptions;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

#[derive(Debug)]
pub(crate) struct GuestPayload {
    archive: PathBuf,
    traffic: PathBuf,
}

/// The contract of the native sandbox, as a program.
pub(crate) const CONTRACT: &str = "native-contract";

impl GuestPayload {
    /// Builds the programs, or takes those that were built before.
    pub(crate) fn make(options: &VmOptions) -> Result<Self, ChoreFailure> {
        say::step("The programs");
        let profile = if options.release { "release" } else { "debug" };
        let built = machine::target().join(profile);
        if !options.no_build {
            // In one go, so that shared dependencies are built once with one set of features.
            let mut build = machine::cargo();
            build.args(["build", "-p", "hermetic", "-p", "hermetic-testkit"]);
            if options.release {
                build.arg("--release");
            }
            program::show(&mut build)?;
        }
        let folder = image::folder()?;
        let staged = folder.join("payload");
        fs::create_dir_all(&staged)
            .map_err(ChoreFailure::file("make a folder for the programs"))?;
        strip(&built.join("hermetic"), &staged.join("hermetic"))?;
        let contract = staged.join(CONTRACT);
        let wanted = options.only.is_empty() || options.only.iter().any(|name| name == "contract");
        if wanted && !(options.no_build && contract.is_file()) {
            strip(&built_contract(options)?, &contract)?;
        }
        let archive = folder.join("payload.tar");
        let mut tar = Command::new("tar");
        tar.arg("-C")
            .arg(&staged)
            .args(["--owner=0", "--group=0", "-cf"]);
        program::show(tar.arg(&archive).arg("."))?;
        Ok(Self {
            archive,
            traffic: built.join("traffic"),
        })
    }

    pub(crate) fn archive(&self) -> &Path {
        &self.archive
    }

    /// The program that plays a chat platform, which stays on this side.
    pub(crate) fn traffic(&self) -> &Path {
        &self.traffic
    }
}

/// The test program of the native backend; cargo says where it put it.
fn built_contract(options: &VmOptions) -> Result<PathBuf, ChoreFailure> {
    let mut build = machine::cargo();
    build.args([
        "test",
        "--no-run",
        "-p",
        "hermetic-native",
        "--test",
        "main",
    ]);
    build.arg("--message-format=json-render-diagnostics");
    if options.release {
        build.arg("--release");
    }
    say::note(&format!("$ {}", program::line(&build)));
    let built = program::listen(build.stderr(std::process::Stdio::inherit()))?;
    let text = String::from_utf8_lossy(&built.stdout);
    executable(&text).ok_or_else(|| ChoreFailure::Ended {
        line: program::line(&build),
        status: built.status,
    })
}

fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(PathBuf::from(rest.split('"').next()?))
    })
}

fn strip(from: &Path, to: &Path) -> Result<(), ChoreFailure> {
    let mut strip = Command::new("strip");
    program::show(strip.arg("-o").arg(to).arg(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_a_test_program_is() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t/deps/main-1f\",\"fresh\":true}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/deps/main-1f")));
        assert_eq!(executable("{\"reason\":\"build-finished\"}"), None);
    }
}
