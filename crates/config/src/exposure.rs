//! Files that say more to others on the machine than they should.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::problem::ConfigProblem;

/// By the group or by others.
const READABLE: u32 = 0o044;
const WRITABLE: u32 = 0o022;

/// A warning if somebody but the owner can change the file, or read it where it holds a secret.
pub(crate) fn of(path: &Path, holds_secrets: bool) -> Option<ConfigProblem> {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mode = about.permissions().mode() & 0o777;
    let what = match mode {
        mode if mode & WRITABLE != 0 => "other users of this machine can change this file",
        mode if mode & READABLE != 0 && holds_secrets => {
            "other users of this machine can read the secrets in this file"
        }
        _ => return None,
    };
    Some(
        ConfigProblem::warning(format!("{what} (mode {mode:o})"))
            .in_file(path)
            .help(format!("chmod 600 {}", path.display())),
    )
}
