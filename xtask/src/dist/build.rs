//! The program that is shipped, built and looked at.

use std::fs;
use std::path::PathBuf;

use super::cross::CrossToolchain;
use super::elf::{ElfNeeds, GlibcVersion, OLDEST_GLIBC};
use super::platform::DistTarget;
use super::sysroot::OldSysroot;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// Which build is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistProfile {
    /// What people get.
    Release,
    /// For trying the packing: it is built quickly, and named so that nobody takes it for the other.
    Dev,
}

impl DistProfile {
    fn folder(self, target: DistTarget) -> PathBuf {
        match self {
            Self::Dev if target.is_host() => machine::target(),
            Self::Dev => CrossToolchain::folder(),
            // C code is compiled otherwise than for the tests, so it has a folder of its own.
            Self::Release => machine::target().join("dist-build"),
        }
    }

    /// Where the program is, once it was built.
    pub(crate) fn program(self, target: DistTarget) -> PathBuf {
        let mut place = self.folder(target);
        if !target.is_host() {
            place.push(target.triple());
        }
        place.push(match self {
            Self::Dev => "debug",
            Self::Release => "release",
        });
        place.join("hermetic")
    }
}

/// A program that may be shipped.
#[derive(Debug)]
pub(crate) struct BuiltProgram {
    pub(crate) path: PathBuf,
    /// The oldest C library it starts with.
    pub(crate) glibc: GlibcVersion,
}

impl BuiltProgram {
    pub(crate) fn build(
        toolchain: &CrossToolchain,
        profile: DistProfile,
    ) -> Result<Self, ChoreFailure> {
        let target = toolchain.target();
        let sysroot = OldSysroot::provide(target)?;
        let mut cargo = machine::cargo();
        cargo.args([
            "rustc",
            "--locked",
            "--package",
            "hermetic",
            "--bin",
            "hermetic",
        ]);
        cargo.arg("--target-dir").arg(profile.folder(target));
        let triple = target.triple();
        if profile == DistProfile::Release {
            cargo.arg("--release");
            let name = format!("CFLAGS_{}", triple.replace('-', "_"));
            cargo.env(name, sysroot.compile_words());
        }
        if !target.is_host() {
            cargo.args(["--target", triple]);
            toolchain.tell(&mut cargo);
        }
        cargo.arg("--");
        for word in sysroot.link_words() {
            cargo.arg("-C").arg(format!("link-arg={word}"));
        }
        program::show(&mut cargo)?;
        Self::look_at(profile.program(target), target)
    }

    /// Refuses what would not start on every system we name.
    fn look_at(path: PathBuf, target: DistTarget) -> Result<Self, ChoreFailure> {
        let bytes =
            fs::read(&path).map_err(ChoreFailure::file(format!("read {}", path.display())))?;
        let needs = ElfNeeds::read(&bytes).map_err(|why| ChoreFailure::Lacking {
            what: format!("{} cannot be shipped: {why}", path.display()),
            remedy: "build it again".to_owned(),
        })?;
        let objections = needs.objections(target.elf(), OLDEST_GLIBC);
        if !objections.is_empty() {
            return Err(ChoreFailure::Lacking {
                what: format!(
                    "{} cannot be shipped: {}",
                    path.display(),
                    objections.join("; ")
                ),
                remedy: "something was linked past the old C library; `readelf -V` names it"
                    .to_owned(),
            });
        }
        let glibc = needs.glibc().ok().flatten().unwrap_or(OLDEST_GLIBC);
        say::note(&format!(
            "{} for {}: {} MB, needs glibc {glibc} and {}",
            path.display(),
            target.name(),
            bytes.len() / 1_000_000,
            needs.libraries.join(", ")
        ));
        Ok(Self { path, glibc })
    }
}
