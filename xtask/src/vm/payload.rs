//! What is carried into a machine: our programs, as a archive on a disk of their own.
//!
//! A disk is read at the emulator's full speed; a copy over ssh would cost the machine's one slow
//! processor a minute of encryption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::image;
use crate::arguments::VmOptions;
use crate::dist::{CrossToolchain, DistProfile, DistTarget};
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
    /// Builds the programs for a kind of machine, or takes those that were built before.
    pub(crate) fn make(options: &VmOptions, target: DistTarget) -> Result<Self, ChoreFailure> {
        say::step(&format!("The programs for {}", target.name()));
        let toolchain = CrossToolchain::provide(target)?;
        let folder = image::folder()?;
        let staged = folder.join(format!("payload-{}", target.debian()));
        fs::create_dir_all(&staged)
            .map_err(ChoreFailure::file("make a folder for the programs"))?;
        if options.packed {
            let packed = DistProfile::Release.program(target);
            if !packed.is_file() {
                return Err(ChoreFailure::Lacking {
                    what: format!("{} is not there", packed.display()),
                    remedy: "`cargo xtask dist` makes it; or leave --packed out".to_owned(),
                });
            }
            // It was stripped when it was linked.
            fs::copy(&packed, staged.join("hermetic"))
                .map_err(ChoreFailure::file("copy the packed program"))?;
        }
        if !options.no_build {
            build(options, &toolchain)?;
        }
        if !options.packed {
            let built = built(options, target).join("hermetic");
            strip(&toolchain, &built, &staged.join("hermetic"))?;
        }
        let contract = staged.join(CONTRACT);
        let wanted = options.only.is_empty() || options.only.iter().any(|name| name == "contract");
        if wanted && !(options.no_build && contract.is_file()) {
            strip(&toolchain, &built_contract(options, &toolchain)?, &contract)?;
        }
        let archive = folder.join(format!("payload-{}.tar", target.debian()));
        let mut tar = Command::new("tar");
        tar.arg("-C")
            .arg(&staged)
            .args(["--owner=0", "--group=0", "-cf"]);
        program::show(tar.arg(&archive).arg("."))?;
        Ok(Self {
            archive,
            traffic: built(options, DistTarget::host()?).join("traffic"),
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

/// In one go where that can be, so that shared dependencies are built once with one set of features.
fn build(options: &VmOptions, toolchain: &CrossToolchain) -> Result<(), ChoreFailure> {
    let target = toolchain.target();
    let mut here = vec!["-p", "hermetic-testkit"];
    if !options.packed && target.is_host() {
        here.extend(["-p", "hermetic"]);
    }
    program::show(cargo(options, "build").args(here))?;
    if options.packed || target.is_host() {
        return Ok(());
    }
    let mut there = cargo(options, "build");
    there.args(["-p", "hermetic"]);
    for_machine(&mut there, toolchain);
    program::show(&mut there)
}

fn cargo(options: &VmOptions, word: &str) -> Command {
    let mut cargo = machine::cargo();
    cargo.arg(word);
    if options.release {
        cargo.arg("--release");
    }
    cargo
}

fn for_machine(cargo: &mut Command, toolchain: &CrossToolchain) {
    let target = toolchain.target();
    if !target.is_host() {
        cargo.args(["--target", target.triple(), "--target-dir"]);
        cargo.arg(CrossToolchain::folder());
        toolchain.tell(cargo);
    }
}

/// Where cargo leaves what it built.
fn built(options: &VmOptions, target: DistTarget) -> PathBuf {
    let profile = if options.release { "release" } else { "debug" };
    let folder = match target.is_host() {
        true => machine::target(),
        false => CrossToolchain::folder().join(target.triple()),
    };
    folder.join(profile)
}

/// The test program of the native backend; cargo says where it put it.
fn built_contract(
    options: &VmOptions,
    toolchain: &CrossToolchain,
) -> Result<PathBuf, ChoreFailure> {
    let mut build = cargo(options, "test");
    build.args(["--no-run", "-p", "hermetic-native", "--test", "main"]);
    build.arg("--message-format=json-render-diagnostics");
    for_machine(&mut build, toolchain);
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

fn strip(toolchain: &CrossToolchain, from: &Path, to: &Path) -> Result<(), ChoreFailure> {
    let mut strip = Command::new(toolchain.tool("strip"));
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
