//! The program that is shipped, built and looked at.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// A program that may be shipped.
#[derive(Debug)]
pub(crate) struct BuiltProgram {
    pub(crate) path: PathBuf,
    /// The oldest C library it starts with.
    pub(crate) glibc: GlibcVersion,
}

impl BuiltProgram {
    /// Says what is missing before anything of an earlier release is touched.
    pub(crate) fn can_be_built(target: DistTarget) -> Result<(), ChoreFailure> {
        CrossToolchain::find(target).map(drop)
    }

    pub(crate) fn build(target: DistTarget, profile: DistProfile) -> Result<Self, ChoreFailure> {
        let toolchain = CrossToolchain::find(target)?;
        let sysroot = OldSysroot::provide(target)?;
        let folder = match profile {
            DistProfile::Dev => machine::target(),
            // C code is compiled otherwise than for the tests, so it has a folder of its own.
            DistProfile::Release => machine::target().join("dist-build"),
        };
        let mut cargo = machine::cargo();
        cargo.args([
            "rustc",
            "--locked",
            "--package",
            "hermetic",
            "--bin",
            "hermetic",
        ]);
        cargo.arg("--target-dir").arg(&folder);
        let triple = target.triple();
        if profile == DistProfile::Release {
            cargo.arg("--release");
            let name = format!("CFLAGS_{}", triple.replace('-', "_"));
            cargo.env(name, sysroot.compile_words());
        }
        let mut place = folder;
        if !target.is_host() {
            cargo.args(["--target", triple]);
            toolchain.tell(&mut cargo);
            place.push(triple);
        }
        cargo.arg("--");
        for word in sysroot.link_words() {
            cargo.arg("-C").arg(format!("link-arg={word}"));
        }
        program::show(&mut cargo)?;
        place.push(match profile {
            DistProfile::Dev => "debug",
            DistProfile::Release => "release",
        });
        Self::look_at(place.join("hermetic"), target)
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

/// A C compiler and a standard library for a machine of another kind.
struct CrossToolchain {
    target: DistTarget,
}

impl CrossToolchain {
    /// Says at once everything that is missing.
    fn find(target: DistTarget) -> Result<Self, ChoreFailure> {
        let toolchain = Self { target };
        if target.is_host() {
            return Ok(toolchain);
        }
        let mut missing = Vec::new();
        let compiler = toolchain.compiler();
        if machine::find(&compiler).is_none() {
            missing.push(format!(
                "{compiler} (apt-get install gcc-{gnu} libc6-dev-{}-cross)",
                target.debian(),
                gnu = target.gnu()
            ));
        } else if !toolchain.has_static_library() {
            missing.push(format!(
                "a static C library for the program inside (apt-get install libc6-dev-{}-cross)",
                target.debian()
            ));
        }
        if !has_standard_library(target) {
            let triple = target.triple();
            missing.push(format!(
                "Rust's standard library for it (rustup target add {triple}; or RUSTC=… of a toolchain that \
                 has it, such as Debian's rustc with libstd-rust-dev:{})",
                target.debian()
            ));
        }
        if missing.is_empty() {
            return Ok(toolchain);
        }
        Err(ChoreFailure::Lacking {
            what: format!("a program for {} cannot be built here", target.name()),
            remedy: format!("missing: {}", missing.join("; ")),
        })
    }

    fn compiler(&self) -> String {
        format!("{}-gcc", self.target.gnu())
    }

    fn has_static_library(&self) -> bool {
        let mut ask = Command::new(self.compiler());
        let said = program::listen(ask.arg("-print-file-name=libc.a"));
        // A compiler that does not find it repeats its name.
        said.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_file())
    }

    /// For cargo, and for the second cargo that builds the program inside.
    fn tell(&self, cargo: &mut Command) {
        let triple = self.target.triple().replace('-', "_");
        let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase());
        cargo.env(linker, self.compiler());
        cargo.env(format!("CC_{triple}"), self.compiler());
        cargo.env(format!("AR_{triple}"), format!("{}-ar", self.target.gnu()));
    }
}

/// Asked of the rustc that cargo takes.
fn has_standard_library(target: DistTarget) -> bool {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(machine::root());
    rustc.args(["--print", "target-libdir", "--target", target.triple()]);
    let Ok(said) = program::listen(&mut rustc) else {
        return false;
    };
    let folder = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| name.to_string_lossy().starts_with("libstd-"))
}
