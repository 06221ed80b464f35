//! Removing what a sandbox may have written: any name, any depth, any mode, and links to anywhere.
//!
//! Nothing is followed and nothing is walked by path. Depth is met by moving each subfolder up to
//! the top before its parent is removed, so two descriptors are enough for any tree.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, chmod, openat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

pub fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = openat(CWD, parent, folder_flags(), Mode::empty())?;
    let top = open_folder(parent.as_fd(), name)?;
    let mut moved = 0_u64;
    loop {
        let folders = remove_files(&top)?;
        if folders.is_empty() {
            break;
        }
        for folder in folders {
            lift_subfolders(&top, &folder, &mut moved)?;
            unlinkat(&top, &folder, AtFlags::REMOVEDIR)?;
        }
    }
    unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

type Name = std::ffi::CString;

/// Unlinks all that is no folder, and names the folders.
fn remove_files(folder: &OwnedFd) -> io::Result<Vec<Name>> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_dots(name) {
            continue;
        }
        if is_folder(folder, name, entry.file_type())? {
            folders.push(name.to_owned());
        } else {
            ignore_missing(unlinkat(folder, name, AtFlags::empty()))?;
        }
    }
    Ok(folders)
}

fn lift_subfolders(top: &OwnedFd, name: &CStr, moved: &mut u64) -> io::Result<()> {
    let folder = open_folder(top.as_fd(), name)?;
    for inner in remove_files(&folder)? {
        // Moving a folder writes its `..`, so it must be writable itself.
        drop(open_folder(folder.as_fd(), &inner)?);
        loop {
            let place = format!("{moved:x}.lifted");
            *moved += 1;
            // Never over what is there: a sandbox may have chosen that very name.
            match renameat_with(&folder, &inner, top, place, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                other => break other?,
            }
        }
    }
    Ok(())
}

/// Opens a real folder, unlocking it first where its owner, who may be us, took the rights away.
fn open_folder(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let handle = openat(
        parent,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mode = rustix::fs::fstat(&handle)?.st_mode;
    if mode & 0o700 != 0o700 {
        // By way of `/proc`: a descriptor of this kind takes no `fchmod`, and by its name a link
        // put there meanwhile would be followed.
        let itself = format!("/proc/self/fd/{}", handle.as_raw_fd());
        chmod(itself, Mode::RWXU)?;
    }
    Ok(openat(parent, name, folder_flags(), Mode::empty())?)
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn is_dots(name: &CStr) -> bool {
    name == c"." || name == c".."
}

fn is_folder(folder: &OwnedFd, name: &CStr, kind: FileType) -> io::Result<bool> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

fn ignore_missing(done: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}
