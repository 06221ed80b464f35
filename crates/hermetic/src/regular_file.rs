//! Files that somebody else left where we look.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to be read, and nothing that is no file: opening a pipe would wait for whoever writes to it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let waits_for_nobody = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(waits_for_nobody.bits().cast_signed())
        .open(path)?;
    // Asked of what was opened: the name may stand for something else by now.
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}

/// The text of a file that is no longer than so many bytes.
pub(crate) fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.take(longest + 1).read_to_string(&mut text)?;
    match text.len() as u64 > longest {
        true => Err(io::Error::other("it is too long")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for_and_what_is_too_long_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        assert_eq!(open(&pipe).unwrap_err().to_string(), "it is no file");
        let file = folder.path().join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        assert!(read_text(&file, 4).is_err());
    }
}
