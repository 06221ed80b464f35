//! What several targets need.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The input cut into pieces of one size, which its first byte chooses.
pub fn in_pieces(bytes: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let Some((size, rest)) = bytes.split_first() else {
        return (bytes, Vec::new());
    };
    (rest, rest.chunks(usize::from(*size).max(1)).collect())
}

/// Whether `part` stands somewhere in `whole`.
pub fn holds(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

/// A folder of this process's own, emptied of what an earlier one with its number left.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let name = format!("hermetic-fuzz-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        folder
    });
    &FOLDER
}
