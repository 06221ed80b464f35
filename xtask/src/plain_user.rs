//! The tests once more without root's rights, started by root.
//!
//! Cargo lets a runner stand before every test binary; ours drops to `nobody` in a mount namespace
//! of its own. There the folders above the source tree, which may be closed to others (as `/root`
//! is), are covered by open ones that lead to this tree only.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::{leftovers, machine, program, say};

pub(crate) struct PlainUser {
    runner: PathBuf,
    variable: String,
    /// Where the user may write; goes with us. Short, for the sockets that tests make in it.
    home: PathBuf,
}

/// As in the script below.
const NOBODY: u32 = 65534;

/// Why this machine has no run as a plain user.
pub(crate) type Impossible = String;

impl PlainUser {
    pub(crate) fn new() -> Result<Result<Self, Impossible>, Failure> {
        let folder = machine::folder("plain-user")?;
        let runner = folder.join("run");
        let home = leftovers::folder("nobody");
        fs::create_dir(&home)
            .and_then(|()| chown(&home, Some(NOBODY), Some(NOBODY)))
            .map_err(Failure::file(format!("make {}", home.display())))?;
        let (root, target) = (machine::root(), machine::target());
        let script = SCRIPT
            .replace("@ROOT@", &root.to_string_lossy())
            .replace("@TARGET@", &target.to_string_lossy())
            .replace("@HOME@", &home.to_string_lossy());
        fs::write(&runner, script)
            .and_then(|()| fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)))
            .map_err(Failure::file(format!("write {}", runner.display())))?;

        let mut probe = Command::new(&runner);
        probe.args(["test", "-r"]).arg(root.join("Cargo.toml"));
        let probed = program::listen(&mut probe)?;
        let variable = format!("CARGO_TARGET_{}_RUNNER", triple()?);
        let user = Self {
            runner,
            variable,
            home,
        };
        if !probed.status.success() {
            let said = String::from_utf8_lossy(&probed.stderr);
            let said = said
                .lines()
                .last()
                .unwrap_or("the source tree is closed to others");
            say::note(said);
            return Ok(Err(said.to_owned()));
        }
        say::note("as uid 65534, without capabilities, groups or a home; by setpriv");
        Ok(Ok(user))
    }

    /// Makes a cargo command start every test binary that way.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(&self.variable, &self.runner);
    }
}

impl Drop for PlainUser {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.home) {
            say::note(&format!("cannot remove {}: {why}", self.home.display()));
        }
    }
}

/// The machine's triple, as cargo writes it in a variable's name.
fn triple() -> Result<String, Failure> {
    let output = program::listen(Command::new("rustc").arg("-vV"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(|triple| triple.to_uppercase().replace('-', "_"))
        .ok_or_else(|| Failure::Lacking {
            what: "rustc does not say what machine this is".to_owned(),
            remedy: "`rustc -vV` should have a line `host: ...`".to_owned(),
        })
}

/// `$1` and on: a test binary and its arguments.
const SCRIPT: &str = r#"#!/bin/sh
# Written by `cargo xtask test`; runs its arguments as a plain user.
set -eu
root='@ROOT@'
target='@TARGET@'
home='@HOME@'

if [ "${HERMETIC_PLAIN_USER-}" != inside ]; then
    HERMETIC_PLAIN_USER=inside exec unshare --mount --propagation private -- "$0" "$@"
fi

drop() {
    exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --ambient-caps=-all "$@"
}
reaches() {
    (drop test -x "$1" -a -r "$1") 2>/dev/null
}

# Opens the way to $1, a copy of which is mounted at $2: covers the first closed folder above it.
open_way() {
    reaches "$1" && return
    path=
    old_ifs=$IFS
    IFS=/
    for name in ${1#/}; do
        path=$path/$name
        if [ -e "$path" ] && ! reaches "$path"; then
            mount -t tmpfs -o mode=755,size=1m tmpfs "$path"
            break
        fi
    done
    IFS=$old_ifs
    mkdir -p "$1"
    mount --bind "$2" "$1"
}

# Covering one way may hide the other, so both are held first.
if ! reaches "$root" || ! reaches "$target"; then
    mount -t tmpfs -o size=1m tmpfs "$home"
    mkdir "$home/root" "$home/target"
    mount --bind "$root" "$home/root"
    mount --bind "$target" "$home/target"
    open_way "$root" "$home/root"
    open_way "$target" "$home/target"
    umount --recursive "$home"
fi
unset HERMETIC_PLAIN_USER
export HOME="$home" TMPDIR="$home"
drop "$@"
"#;
