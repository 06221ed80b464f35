//! Files with secrets that others on the machine can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::problem::Problem;

const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// A warning if somebody but the owner can read or write the file.
pub(crate) fn of(path: &Path) -> Option<Problem> {
    let mode = fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)?
        .permissions()
        .mode()
        & 0o777;
    let act = match mode {
        mode if mode & OTHERS_WRITE != 0 => "change",
        mode if mode & OTHERS != 0 => "read",
        _ => return None,
    };
    Some(
        Problem::warning(format!(
            "other users of this machine can {act} this file (mode {mode:o})"
        ))
        .in_file(path)
        .help(format!("chmod 600 {}", path.display())),
    )
}
