//! What an instance finds in the place of its image's own scripts: one program, ours.
//!
//! A runtime sources an image's scripts before it starts anything, outside of any cage. With this
//! folder over theirs, there are none.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Where an image keeps its scripts.
pub(crate) const PLACE: &str = "/.singularity.d";

/// The one that an instance starts.
const SCRIPT: &str = "startscript";

/// Made once for each version of the program, whole or not at all.
pub(crate) fn prepare(state: &Path, program: &[u8]) -> io::Result<PathBuf> {
    let digest = Sha256::digest(program);
    let name: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let stage = state.join(format!("stage-{name}"));
    // The whole of it is compared and not only found: a crash or a full disk may have left part of
    // it.
    if fs::read(stage.join(SCRIPT)).is_ok_and(|found| found == program) {
        return Ok(stage);
    }
    let half = state.join(format!("stage-{name}.{}", std::process::id()));
    let _ = fs::remove_dir_all(&half);
    fs::DirBuilder::new().mode(0o755).create(&half)?;
    fs::write(half.join(SCRIPT), program)?;
    fs::set_permissions(half.join(SCRIPT), fs::Permissions::from_mode(0o555))?;
    match fs::rename(&half, &stage) {
        Ok(()) => Ok(stage),
        // Somebody else was faster, or left a broken one.
        Err(error) => {
            if fs::read(stage.join(SCRIPT)).is_ok_and(|found| found == program) {
                let _ = fs::remove_dir_all(&half);
                return Ok(stage);
            }
            fs::remove_dir_all(&stage).map_err(|_| error)?;
            fs::rename(&half, &stage)?;
            Ok(stage)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_stage_is_made_again() {
        let state = tempfile::tempdir().unwrap();
        let stage = prepare(state.path(), b"program").unwrap();
        let script = stage.join(SCRIPT);
        assert_eq!(prepare(state.path(), b"program").unwrap(), stage);
        fs::remove_file(&script).unwrap();
        fs::write(&script, b"half a pro").unwrap();
        assert_eq!(prepare(state.path(), b"program").unwrap(), stage);
        assert_eq!(fs::read(script).unwrap(), b"program");
        assert_ne!(prepare(state.path(), b"another").unwrap(), stage);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 2);
    }
}
