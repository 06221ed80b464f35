//! The package in clean systems: installed, used, removed, purged.
//!
//! A system is a root file system of a release, in namespaces of its own and without a network. It is entered
//! as a container is, not by `chroot`, inside which nobody may make a user namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::ChoreFailure;
use crate::{leftovers, machine, program, say};

/// The oldest that we name, the one before, and the one with an AppArmor that knows user namespaces.
const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie"];

/// Beside the least: systemd to read the units, AppArmor to read the profile.
const PACKAGES: &str = "apparmor,systemd";

const ENTER: &str = include_str!("package/enter.sh");
const STORY: &str = include_str!("package/check.sh");

pub(crate) fn run(package: &Path, version: &str) -> Result<(), ChoreFailure> {
    if !machine::is_root() {
        return Err(ChoreFailure::Lacking {
            what: "only root can install a package in a clean system".to_owned(),
            remedy: "run it as root, or leave --check out".to_owned(),
        });
    }
    if machine::find("mmdebstrap").is_none() {
        return Err(ChoreFailure::Lacking {
            what: "there is no mmdebstrap".to_owned(),
            remedy: "apt-get install mmdebstrap".to_owned(),
        });
    }
    for suite in SUITES {
        say::step(&format!("The package in a clean {suite}"));
        let system = CleanSystem::unpack(suite)?;
        system.tell(package, version)?;
    }
    Ok(())
}

/// A root file system that nobody has used, gone with us.
struct CleanSystem {
    root: PathBuf,
}

impl CleanSystem {
    fn unpack(suite: &str) -> Result<Self, ChoreFailure> {
        let tar = Self::made(suite)?;
        let system = Self {
            root: leftovers::folder(&format!("root-{suite}")),
        };
        let _ = fs::remove_dir_all(&system.root);
        fs::create_dir(&system.root).map_err(ChoreFailure::file(format!(
            "make {}",
            system.root.display()
        )))?;
        let mut unpack = Command::new("tar");
        unpack
            .arg("-xpf")
            .arg(&tar)
            .args(["--numeric-owner", "--exclude=./dev/*", "-C"]);
        program::show(unpack.arg(&system.root))?;
        Ok(system)
    }

    /// From an earlier run if there was one.
    fn made(suite: &str) -> Result<PathBuf, ChoreFailure> {
        let folder = machine::folder("clean-systems")?;
        let tar = folder.join(format!("{suite}.tar"));
        if tar.is_file() {
            return Ok(tar);
        }
        let half = folder.join(format!("{suite}.begun.tar"));
        let mut make = Command::new("mmdebstrap");
        make.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
        make.args([
            "--aptopt=Acquire::Retries \"3\"",
            "--aptopt=Acquire::Check-Valid-Until \"false\"",
        ]);
        make.arg("--aptopt=APT::Install-Recommends \"false\"");
        make.arg(suite).arg(&half);
        program::show(make.arg("http://deb.debian.org/debian"))?;
        fs::rename(&half, &tar).map_err(ChoreFailure::file(format!("keep {}", tar.display())))?;
        Ok(tar)
    }

    fn tell(&self, package: &Path, version: &str) -> Result<(), ChoreFailure> {
        let inside = self.root.join("hermetic.deb");
        fs::copy(package, &inside).map_err(ChoreFailure::file("copy the package"))?;
        let mut enter = Command::new("unshare");
        enter.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--fork",
            "--kill-child",
        ]);
        enter.args(["--propagation", "private", "sh", "-euc", ENTER, "sh"]);
        enter.arg(&self.root);
        enter.args(["sh", "-euc", STORY, "sh", version]);
        // Not shown as a line: it would be the whole story.
        let status = enter.stdin(Stdio::null()).status();
        let line = "the story of the package".to_owned();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(ChoreFailure::Ended { line, status }),
            Err(source) => Err(ChoreFailure::Start { line, source }),
        }
    }
}

impl Drop for CleanSystem {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
