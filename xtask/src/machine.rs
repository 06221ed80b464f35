//! The machine and the folders we work in.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::ChoreFailure;

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
