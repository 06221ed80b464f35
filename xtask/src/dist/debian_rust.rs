//! Debian's Rust compiler with its standard library for a machine of another kind.
//!
//! A toolchain comes with the library of its own machine; the one for another is fetched by `rustup`, where
//! that is. Debian packs the library for every machine, made by the very compiler that reads it. Both are
//! unpacked into a folder, and nothing of the machine's changes (`docs/decisions/0270`).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::DistTarget;
use crate::failure::ChoreFailure;
use crate::packages::{self, DebianRelease};
use crate::{machine, program, say};

/// The compiler is of the first, and what it is linked with of the second.
const SUITES: [&str; 2] = ["trixie-backports", "trixie"];
const MIRROR: &str = "http://deb.debian.org/debian";

/// The compiler is linked with a newer C library than this machine may have, so it is started by the loader
/// that came with it. Nothing of that is left to what it starts itself: the linker is this machine's.
const START: &str = r#"#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/root/usr
exec "$here/lib/@HOST@/@LOADER@" --library-path "$here/lib/@HOST@" "$here/bin/rustc" --sysroot "$here" "$@"
"#;

/// What came along and is no part of a compiler.
const LEFT_OUT: [&str; 4] = ["etc", "usr/include", "usr/libexec", "usr/share"];

/// A folder with the compiler and its libraries.
#[derive(Debug)]
pub(crate) struct DebianRust {
    folder: PathBuf,
}

impl DebianRust {
    /// What keeps it from being fetched here, to be read after "where".
    pub(crate) fn lacks() -> Option<&'static str> {
        let debian = machine::find("apt-get").is_some() && machine::find("dpkg-deb").is_some();
        match (debian, machine::is_root(), machine::find("mmdebstrap")) {
            (false, ..) => Some("there is apt-get"),
            (_, false, _) => Some("root starts this"),
            (.., None) => Some("there is mmdebstrap"),
            _ => None,
        }
    }

    /// From an earlier run if there was one.
    pub(crate) fn provide(target: DistTarget) -> Result<Self, ChoreFailure> {
        let kept = machine::folder("debian-rust")?;
        let found = Self {
            folder: kept.join(target.debian()),
        };
        if found.folder.is_dir() {
            return Ok(found);
        }
        say::note("fetching Debian's Rust compiler, 250 MB");
        // Under another name until it is whole.
        let begun = Self {
            folder: kept.join(format!("{}.begun", target.debian())),
        };
        remove(&begun.folder)?;
        fs::create_dir(&begun.folder).map_err(ChoreFailure::file("make a folder for it"))?;
        begun.fetch(target)?;
        begun.is_new_enough()?;
        fs::rename(&begun.folder, &found.folder)
            .map_err(ChoreFailure::file("keep Debian's Rust compiler"))?;
        Ok(found)
    }

    /// What cargo takes for `rustc`.
    pub(crate) fn compiler(&self) -> PathBuf {
        self.folder.join("rustc")
    }

    fn fetch(&self, target: DistTarget) -> Result<(), ChoreFailure> {
        let root = self.folder.join("root");
        let mut extract = Command::new("mmdebstrap");
        extract.args(["--variant=extract", "--mode=root", "--format=directory"]);
        extract.args([
            "--aptopt=Acquire::Retries \"3\"",
            "--aptopt=APT::Install-Recommends \"false\"",
        ]);
        let [first, second] = SUITES;
        extract.arg(format!("--aptopt=APT::Default-Release \"{first}\""));
        extract.args(["--include=rustc", second]).arg(&root);
        for suite in SUITES {
            extract.arg(format!("deb {MIRROR} {suite} main"));
        }
        program::show(&mut extract)?;
        let work = self.folder.join("other");
        let release = DebianRelease {
            suite: first,
            architecture: Some(target.debian()),
        };
        packages::fetch(&work, release, &[("libstd-rust-dev", "root")])?;
        let library = format!("usr/lib/rustlib/{}", target.triple());
        fs::rename(work.join("root").join(&library), root.join(&library))
            .map_err(ChoreFailure::file("place Rust's standard library"))?;
        remove(&work)?;
        for folder in LEFT_OUT {
            remove(&root.join(folder))?;
        }
        let host = DistTarget::host()?.gnu();
        let loader = loader(&root.join("usr/lib").join(host))?;
        let start = START.replace("@HOST@", host).replace("@LOADER@", &loader);
        let written = fs::write(self.compiler(), start);
        written
            .and_then(|()| fs::set_permissions(self.compiler(), Permissions::from_mode(0o755)))
            .map_err(ChoreFailure::file("write what starts the compiler"))
    }

    /// Debian's may be older than what our sources are written for.
    fn is_new_enough(&self) -> Result<(), ChoreFailure> {
        let said = program::listen(Command::new(self.compiler()).arg("--version"))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let manifest = fs::read_to_string(machine::root().join("Cargo.toml"))
            .map_err(ChoreFailure::file("read Cargo.toml"))?;
        match (compiler_version(&said), wanted_version(&manifest)) {
            (Some(has), Some(wanted)) if has >= wanted => Ok(()),
            _ => Err(ChoreFailure::Lacking {
                what: format!("Debian's Rust compiler does not do: {:?}", said.trim()),
                remedy: "Cargo.toml names the oldest that does; `rustup target add` brings the library of the \
                         one in use"
                    .to_owned(),
            }),
        }
    }
}

/// The first two numbers of `rustc 1.96.1 (…)`.
fn compiler_version(said: &str) -> Option<(u32, u32)> {
    numbers(said.strip_prefix("rustc ")?)
}

fn wanted_version(manifest: &str) -> Option<(u32, u32)> {
    let mut lines = manifest.lines();
    numbers(lines.find_map(|line| line.strip_prefix("rust-version = \""))?)
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

fn loader(folder: &Path) -> Result<String, ChoreFailure> {
    let entries = fs::read_dir(folder).map_err(ChoreFailure::file("look for a loader"))?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut loaders = names.filter(|name| name.starts_with("ld-linux-"));
    loaders.next().ok_or_else(|| ChoreFailure::Lacking {
        what: "Debian's Rust compiler came without a C library".to_owned(),
        remedy: "its packages have changed".to_owned(),
    })
}

fn remove(folder: &Path) -> Result<(), ChoreFailure> {
    match fs::remove_dir_all(folder) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(ChoreFailure::file(format!(
            "remove {}",
            folder.display()
        ))(why)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let debian = "rustc 1.96.1 (31fca3adb 2026-06-26) (built from a source tarball)\n";
        assert_eq!(compiler_version(debian), Some((1, 96)));
        assert_eq!(compiler_version("rustup 1.96.1"), None);
        let manifest = "[workspace.package]\nedition = \"2024\"\nrust-version = \"1.95\"\n";
        assert_eq!(wanted_version(manifest), Some((1, 95)));
        assert!(compiler_version("rustc 1.100.0 (x)") > wanted_version(manifest));
        assert!(compiler_version("rustc 1.85.1 (x)") < wanted_version(manifest));
    }
}
