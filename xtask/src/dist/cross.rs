//! What builds a program for a machine: its C compiler, its C library to link into the program inside, and a
//! Rust compiler with a standard library for it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian_rust::DebianRust;
use super::platform::DistTarget;
use crate::apt::AptPackages;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// A compiler for each language, for this machine's own kind or for another one.
#[derive(Debug)]
pub(crate) struct CrossToolchain {
    target: DistTarget,
    /// Debian's Rust compiler, where the one in use has no standard library for that machine.
    rustc: Option<PathBuf>,
}

impl CrossToolchain {
    /// Takes what is there; on a Debian, root gets the rest from its packages. Anybody else is told at once
    /// everything that is missing.
    pub(crate) fn provide(target: DistTarget) -> Result<Self, ChoreFailure> {
        let mut toolchain = Self {
            target,
            rustc: None,
        };
        if target.is_host() {
            return Ok(toolchain);
        }
        let has_rust = has_standard_library(target);
        let mut missing = toolchain.missing_c();
        if DebianRust::lacks().is_none() {
            if !missing.is_empty() {
                say::note(&format!("{} is missing", missing.join("; ")));
                let mut apt = AptPackages::default();
                for package in toolchain.packages() {
                    apt.install(&package)?;
                }
                missing = toolchain.missing_c();
            }
            if !has_rust && missing.is_empty() {
                toolchain.rustc = Some(DebianRust::provide(target)?.compiler());
            }
        } else if !has_rust {
            missing.push(missing_rust(target));
        }
        if missing.is_empty() {
            return Ok(toolchain);
        }
        Err(ChoreFailure::Lacking {
            what: format!("a program for {} cannot be built here", target.name()),
            remedy: format!("missing: {}", missing.join("; ")),
        })
    }

    pub(crate) fn target(&self) -> DistTarget {
        self.target
    }

    /// Where cargo builds for other machines what is not released: another compiler may be at work.
    pub(crate) fn folder() -> PathBuf {
        machine::target().join("cross")
    }

    /// For cargo, and for the second cargo that builds the program inside.
    pub(crate) fn tell(&self, cargo: &mut Command) {
        let triple = self.target.triple().replace('-', "_");
        let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase());
        cargo.env(linker, self.c_compiler());
        cargo.env(format!("CC_{triple}"), self.c_compiler());
        cargo.env(format!("AR_{triple}"), self.tool("ar"));
        if let Some(rustc) = &self.rustc {
            cargo.env("RUSTC", rustc);
        }
    }

    /// One of the tools beside the C compiler.
    pub(crate) fn tool(&self, name: &str) -> String {
        match self.target.is_host() {
            true => name.to_owned(),
            false => format!("{}-{name}", self.target.gnu()),
        }
    }

    fn c_compiler(&self) -> String {
        self.tool("gcc")
    }

    fn packages(&self) -> [String; 2] {
        [
            format!("gcc-{}", self.target.package()),
            format!("libc6-dev-{}-cross", self.target.debian()),
        ]
    }

    fn missing_c(&self) -> Vec<String> {
        let compiler = self.c_compiler();
        let [gcc, library] = self.packages();
        if machine::find(&compiler).is_none() {
            vec![format!("{compiler} (apt-get install {gcc} {library})")]
        } else if !self.has_static_library() {
            vec![format!(
                "a static C library for the program inside (apt-get install {library})"
            )]
        } else {
            Vec::new()
        }
    }

    fn has_static_library(&self) -> bool {
        let mut ask = Command::new(self.c_compiler());
        let said = program::listen(ask.arg("-print-file-name=libc.a"));
        // A compiler that does not find it repeats its name.
        said.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_file())
    }
}

fn missing_rust(target: DistTarget) -> String {
    let triple = target.triple();
    let lacks = DebianRust::lacks().unwrap_or_default();
    format!(
        "Rust's standard library for it (rustup target add {triple}; or RUSTC=… of a toolchain that has it; \
         Debian's is fetched where {lacks})"
    )
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
