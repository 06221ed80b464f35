//! What was made, tried: the archive and the package in clean systems, the container image in an engine.
//!
//! A system is a root file system of a release, in namespaces of its own and without a network. It is entered
//! as a container is, not by `chroot`, inside which nobody may make a user namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::platform::DistTarget;
use super::sysroot::OldSysroot;
use super::{DistRelease, SUMS};
use crate::engine::LabEngine;
use crate::failure::ChoreFailure;
use crate::vm::ubuntu_archive;
use crate::{leftovers, machine, program, say};

/// Every release that we name, from the oldest on; the last of each has an AppArmor that knows user namespaces.
const SUITES: [(&str, SuiteOrigin); 6] = [
    ("bullseye", SuiteOrigin::Debian),
    ("bookworm", SuiteOrigin::Debian),
    ("trixie", SuiteOrigin::Debian),
    ("focal", SuiteOrigin::Ubuntu),
    ("jammy", SuiteOrigin::Ubuntu),
    ("noble", SuiteOrigin::Ubuntu),
];

/// Whose release it is, and so where its packages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuiteOrigin {
    Debian,
    Ubuntu,
}

/// Beside the least: systemd to read the units, AppArmor to read the profile.
const PACKAGES: &str = "apparmor,systemd";

const ENTER: &str = include_str!("package/enter.sh");
const ARCHIVE: &str = include_str!("package/archive.sh");
const PACKAGE: &str = include_str!("package/check.sh");
const IMAGE: &str = include_str!("package/image.sh");
const EMULATED: &str = include_str!("package/emulated.sh");

/// Said before anything is built that could then not be tried.
pub(super) fn can_be_done() -> Result<(), ChoreFailure> {
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
    Ok(())
}

pub(super) fn run(release: &DistRelease, target: DistTarget) -> Result<(), ChoreFailure> {
    if !target.is_host() {
        return try_in_emulator(release, target);
    }
    for (suite, origin) in SUITES {
        say::step(&format!("The archive and the package in a clean {suite}"));
        let system = CleanSystem::unpack(suite, origin)?;
        system.bring(release, target)?;
        system.tell("the archive", ARCHIVE, &release.version)?;
        system.tell("the package", PACKAGE, &release.version)?;
    }
    say::step("The container image in an engine");
    let image = release.image(target).with_extension("tar.gz");
    match image.is_file() {
        true => try_image(&image, &release.version),
        false => {
            say::note("SKIPPED: none was made");
            Ok(())
        }
    }
}

/// What another kind of machine gets, as far as an emulator of its processor goes: on the C library that
/// it was linked for, the program starts, reads and judges. What takes a kernel of that kind is tried by
/// `cargo xtask vm`.
fn try_in_emulator(release: &DistRelease, target: DistTarget) -> Result<(), ChoreFailure> {
    say::step(&format!("The archive for {} in an emulator", target.name()));
    let Some(emulator) = machine::emulator(target) else {
        say::note(&format!(
            "SKIPPED: there is no qemu-{} (apt-get install qemu-user-static)",
            target.name()
        ));
        return Ok(());
    };
    let work = leftovers::folder("emulated");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir(&work).map_err(ChoreFailure::file(format!("make {}", work.display())))?;
    let mut story = Command::new("sh");
    story.args(["-euc", EMULATED, "sh", &release.version]);
    story.arg(release.archive(target).with_extension("tar.gz"));
    story.arg(release.package(target)).arg(&work);
    story
        .arg(emulator)
        .arg(OldSysroot::provide(target)?.folder());
    story.arg(target.debian());
    let tried = told("the story of the emulated program", &mut story);
    let _ = fs::remove_dir_all(&work);
    tried
}

fn try_image(image: &Path, version: &str) -> Result<(), ChoreFailure> {
    let engine = LabEngine::reach()?;
    let mut story = Command::new("sh");
    story.env("DOCKER_HOST", engine.host());
    story.args(["-euc", IMAGE, "sh", version]).arg(image);
    told("the story of the container image", &mut story)
}

/// Not shown as a line: it would be the whole story.
fn told(line: &str, story: &mut Command) -> Result<(), ChoreFailure> {
    let line = line.to_owned();
    match story.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(ChoreFailure::Ended { line, status }),
        Err(source) => Err(ChoreFailure::Start { line, source }),
    }
}

/// A root file system that nobody has used, gone with us.
struct CleanSystem {
    root: PathBuf,
}

impl CleanSystem {
    fn unpack(suite: &str, origin: SuiteOrigin) -> Result<Self, ChoreFailure> {
        let tar = Self::made(suite, origin)?;
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
    fn made(suite: &str, origin: SuiteOrigin) -> Result<PathBuf, ChoreFailure> {
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
        let archive = match origin {
            SuiteOrigin::Debian => "http://deb.debian.org/debian".to_owned(),
            SuiteOrigin::Ubuntu => ubuntu_archive(&folder, suite)?,
        };
        program::show(make.arg(archive))?;
        fs::rename(&half, &tar).map_err(ChoreFailure::file(format!("keep {}", tar.display())))?;
        Ok(tar)
    }

    /// The package, and beside it what `install.sh` installs from.
    fn bring(&self, release: &DistRelease, target: DistTarget) -> Result<(), ChoreFailure> {
        let folder = self.root.join("dist");
        fs::create_dir(&folder).map_err(ChoreFailure::file("make a folder for the release"))?;
        let bring = |from: &Path, to: &Path| {
            let copied = fs::copy(from, to).map(drop);
            copied.map_err(ChoreFailure::file(format!("copy {}", from.display())))
        };
        let archive = release.archive(target).with_extension("tar.gz");
        for from in [
            &archive,
            &release.folder.join(SUMS),
            &release.folder.join("install.sh"),
        ] {
            bring(from, &folder.join(from.file_name().unwrap_or_default()))?;
        }
        bring(&release.package(target), &self.root.join("hermetic.deb"))
    }

    fn tell(&self, of: &str, story: &str, version: &str) -> Result<(), ChoreFailure> {
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
        enter.args(["sh", "-euc", story, "sh", version]);
        told(&format!("the story of {of}"), &mut enter)
    }
}

impl Drop for CleanSystem {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
