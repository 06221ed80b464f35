//! The machine and the folders we work in.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::DistTarget;
use crate::failure::ChoreFailure;
use crate::program;

/// The top of the source tree.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask/ is in the root").to_owned()
}

/// Where cargo builds, which may be set from outside.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |set| root().join(set))
}

/// A folder of our own among what is built; kept between runs.
pub(crate) fn folder(name: &str) -> Result<PathBuf, ChoreFailure> {
    let folder = target().join("xtask").join(name);
    fs::create_dir_all(&folder)
        .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
    Ok(folder)
}

/// The cargo that started us, in the source tree.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Whether programs for that kind of machine start here: on the machine itself, or by an emulator that the
/// kernel calls for them. Packages are set up by programs of their own.
pub(crate) fn runs(target: DistTarget) -> bool {
    let mut ask = Command::new("arch-test");
    target.is_host() || program::works(ask.arg(target.debian()))
}

/// What emulates that kind of processor for a single program.
pub(crate) fn emulator(target: DistTarget) -> Option<PathBuf> {
    let names = ["", "-static"].map(|end| format!("qemu-{}{end}", target.name()));
    names.iter().find_map(|name| find(name))
}

/// What makes [`runs`] true.
pub(crate) const RUNNING_OTHERS: &str = "apt-get install qemu-user-static binfmt-support arch-test; /proc/sys/fs/binfmt_misc must be mounted";

pub(crate) fn is_root() -> bool {
    // The owner of our own entry in /proc is the user we run as.
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

/// Looks where daemons live too: a plain user's PATH has no `sbin`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(daemons)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// What `/etc/os-release` says under this key.
pub(crate) fn os_release(key: &str) -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}
