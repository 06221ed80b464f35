//! Copies what a survey found, and removes copies.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _, symlink,
};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ioctl_ficlone, mknodat, seek};
use rustix::io::Errno;

use crate::attributes::{copy_attributes, copy_extended_attributes};
use crate::survey::{FoundEntry, WorkspaceSurvey};

/// Copies everything below `from` to below `to`, a folder that is there and empty.
pub(crate) fn duplicate(survey: &WorkspaceSurvey, from: &Path, to: &Path) -> io::Result<()> {
    let mut sharing = BlockSharing::Possible;
    for entry in &survey.entries {
        let (source, target) = (from.join(&entry.path), to.join(&entry.path));
        // Where a name in another folder may not be given, it becomes a file of its own.
        if let Some(first) = entry.same_as.and_then(|first| survey.entries.get(first))
            && fs::hard_link(to.join(&first.path), &target).is_ok()
        {
            continue;
        }
        copy_entry(entry, &source, &target, &mut sharing)?;
    }
    // From the inside to the outside: to be written to, a folder needs rights that it may not have, and what is
    // put into it changes its time.
    for entry in survey.entries.iter().rev() {
        if entry.facts.is_dir() {
            let (source, target) = (from.join(&entry.path), to.join(&entry.path));
            copy_extended_attributes(&source, &target);
            fs::set_permissions(&target, Permissions::from_mode(entry.facts.mode() & 0o7777))?;
            copy_attributes(&entry.facts, &target);
        }
    }
    Ok(())
}

/// Whether files of this file system can share blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockSharing {
    /// As far as anybody knows.
    Possible,
    Refused,
}

fn copy_entry(
    entry: &FoundEntry,
    source: &Path,
    target: &Path,
    sharing: &mut BlockSharing,
) -> io::Result<()> {
    let kind = entry.facts.file_type();
    if kind.is_dir() {
        // Ours alone until its contents are there.
        return DirBuilder::new().mode(0o700).create(target);
    }
    if kind.is_symlink() {
        symlink(fs::read_link(source)?, target)?;
    } else if kind.is_file() {
        copy_file(entry, source, target, sharing)?;
        copy_extended_attributes(source, target);
        fs::set_permissions(target, Permissions::from_mode(entry.facts.mode() & 0o7777))?;
    } else {
        let node = match kind {
            kind if kind.is_fifo() => FileType::Fifo,
            kind if kind.is_socket() => FileType::Socket,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let mode = Mode::from_raw_mode(entry.facts.mode() & 0o7777);
        mknodat(CWD, target, node, mode, 0)?;
    }
    copy_attributes(&entry.facts, target);
    Ok(())
}

fn copy_file(
    entry: &FoundEntry,
    source: &Path,
    target: &Path,
    sharing: &mut BlockSharing,
) -> io::Result<()> {
    let mut source = OpenOptions::new()
        .read(true)
        // It was a file a moment ago. What took its place is not followed and not waited for.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(source)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)?;
    let length = entry.facts.len();
    if length == 0 {
        return Ok(());
    }
    if *sharing == BlockSharing::Possible {
        match ioctl_ficlone(&target, &source) {
            Ok(()) => return Ok(()),
            Err(_) => *sharing = BlockSharing::Refused,
        }
    }
    // Blocks are of 512 bytes, whatever the file system's own are.
    if entry.facts.blocks().saturating_mul(512) < length {
        return copy_data(&mut source, &mut target, length);
    }
    // No more than was found: a file that is being written must not fill the disk here.
    io::copy(&mut source.take(length), &mut target).map(drop)
}

/// Copies what is between the holes.
fn copy_data(source: &mut File, target: &mut File, length: u64) -> io::Result<()> {
    target.set_len(length)?;
    let mut at = 0;
    while at < length {
        let begins = match seek(&*source, rustix::fs::SeekFrom::Data(at)) {
            Ok(begins) => begins.min(length),
            // Nothing but a hole from here on.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let ends = seek(&*source, rustix::fs::SeekFrom::Hole(begins))?.min(length);
        source.seek(SeekFrom::Start(begins))?;
        target.seek(SeekFrom::Start(begins))?;
        io::copy(&mut source.take(ends - begins), target)?;
        // A file system that knows no holes names the same place for ever.
        at = ends.max(begins + 1);
    }
    target.flush()
}

/// Removes a folder with all that is in it; that there is none is no error.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A folder in it that was copied as one that nobody may write to.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let _ = open_up(folder);
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Makes every folder below this one, and itself, one that its owner may write to.
fn open_up(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for found in fs::read_dir(&folder)? {
            let found = found?;
            if found.file_type()?.is_dir() {
                folders.push(found.path());
            }
        }
    }
    Ok(())
}
