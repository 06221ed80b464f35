//! Finds out whether a disk has room, by taking some.
//!
//! What a file system says of itself leaves out quotas, and counts for everybody what it keeps for root.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, openat};
use rustix::io::Errno;

/// More than a start writes before it can wait by itself: a new store, and a copy of `/etc`.
const NEEDED: usize = 8 << 20;

/// Whether a file of that size fits into the folder. Where that cannot be tried for another reason, room is
/// not what is lacking.
pub(super) fn has_room(folder: &Path) -> bool {
    match take(folder) {
        Ok(()) => true,
        Err(error) => !is_lack_of_room(&error),
    }
}

fn is_lack_of_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// What was taken is given back when the file is closed: it has no name.
fn take(folder: &Path) -> io::Result<()> {
    let mut file = nameless(folder)?;
    match fallocate(&file, FallocateFlags::empty(), 0, NEEDED as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write(&mut file),
        allocated => Ok(allocated?),
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let private = Mode::from_raw_mode(0o600);
    match openat(rustix::fs::CWD, folder, flags, private) {
        Ok(file) => Ok(file.into()),
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let path = folder.join(format!("room-probe.{}", std::process::id()));
            let file = File::create(&path)?;
            fs::remove_file(path)?;
            Ok(file)
        }
        Err(error) => Err(error.into()),
    }
}

fn write(file: &mut File) -> io::Result<()> {
    static PIECE: [u8; 64 << 10] = [0; 64 << 10];
    for _ in 0..NEEDED / PIECE.len() {
        file.write_all(&PIECE)?;
    }
    // A disk far away may say only now that it is full.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_room_has_it_and_nothing_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(has_room(folder.path()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_lacks_something_else() {
        assert!(has_room(Path::new("/nonexistent/folder")));
    }
}
