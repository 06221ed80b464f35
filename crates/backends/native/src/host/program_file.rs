//! The inner program as a file of the state folder, written once after each boot, so that a start need not copy
//! it into memory: that was a fifth of what `hermetic exec` cost.
//!
//! A process of a sandbox must not be able to change what the next start executes outside. So the file is
//! executed through a mount of its own that is read-only, it belongs to root and a sandbox to somebody
//! else, and its folder is root's alone. Wherever one of these cannot be had the program is copied, as it
//! always is for a plain user.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hermetic_sandbox::host::InsideProgram;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, fchmod, fstat, fstatvfs, linkat, openat,
    unlinkat,
};
use rustix::io::Errno;

use super::sys::read_only::read_only_mount_of;

const PREFIX: &str = "program-";

/// Anybody's to execute: inside, the program starts itself again as the sandbox's user.
const MODE: u32 = 0o555;

/// Returns the program as a file that cannot be written, made first where it is not there.
pub(super) fn hold(state: &Path, program: &[u8]) -> io::Result<InsideProgram> {
    // A plain user's sandbox is that user, who owns the file and could make it writable again.
    if !rustix::process::geteuid().is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let folder = folder_of_root(state)?;
    let name = name()?;
    let file = match checked(&folder, &name, program.len()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Before the new one is written, as the disk may be full of old ones.
            remove_others(state, &folder, &name);
            write(&folder, &name, program)?;
            checked(&folder, &name, program.len())?
        }
        found => found?,
    };
    Ok(InsideProgram::of_file(read_only_mount_of(file.as_fd())?))
}

/// The folder, where nobody but root can put anything in it. Root may use the home of somebody else.
fn folder_of_root(state: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Held by a descriptor from here on: what is checked, written and linked is in the folder that
    // was judged.
    let folder = rustix::fs::open(state, flags, Mode::empty())?;
    let found = fstat(&folder)?;
    if found.st_uid == 0 && found.st_mode & 0o022 == 0 {
        Ok(folder)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Of this very executable and this boot: another version of ours has another program, and what was written
/// before a power cut may be no longer what it was.
fn name() -> io::Result<String> {
    let ours = fs::metadata("/proc/self/exe")?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!(
        "{PREFIX}{:x}-{:x}-{:x}-{:x}.{:x}-{}",
        ours.dev(),
        ours.ino(),
        ours.size(),
        ours.ctime(),
        ours.ctime_nsec(),
        boot.trim()
    ))
}

/// The file of that name, as only we make it. What is checked is the file that is executed, not its name.
fn checked(folder: &OwnedFd, name: &str, size: usize) -> io::Result<OwnedFd> {
    // A pipe under that name must not make us wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let found = fstat(&file)?;
    let is_ours = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_uid == 0
        && found.st_mode & 0o7777 == MODE
        // A second name could lie in a folder where somebody else renames it away and puts another
        // there.
        && found.st_nlink == 1
        && usize::try_from(found.st_size) == Ok(size);
    if !is_ours {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Told now, so that the program is copied instead; at the first start it would be an error.
    if fstatvfs(&file)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

/// Without a name until it is whole, so that a crash leaves none and another start finds all of it or nothing.
fn write(folder: &OwnedFd, name: &str, program: &[u8]) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, ".", flags, Mode::from_raw_mode(0o600))?);
    file.write_all(program)?;
    // Whoever starts us may keep new files to themselves.
    fchmod(&file, Mode::from_raw_mode(MODE))?;
    // Linked by a descriptor that cannot write, as the one that can is closed first.
    let read = openat(
        rustix::fs::CWD,
        path_of(file.as_raw_fd()),
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    // Before it has a name: nothing that is open for writing can be executed.
    drop(file);
    let linked = linkat(
        rustix::fs::CWD,
        path_of(read.as_raw_fd()),
        folder,
        name,
        AtFlags::SYMLINK_FOLLOW,
    );
    match linked {
        // Another start was faster, and its file is the same.
        Err(Errno::EXIST) => Ok(()),
        linked => Ok(linked?),
    }
}

fn path_of(descriptor: i32) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{descriptor}"))
}

/// Those of other versions and other boots. Who executes one of them has it open.
fn remove_others(state: &Path, folder: &OwnedFd, name: &str) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let other = entry.file_name();
        let is_other = other
            .to_str()
            .is_some_and(|other| other.starts_with(PREFIX) && other != name);
        if is_other {
            let _ = unlinkat(folder, &other, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const PROGRAM: &[u8] = b"#!/bin/true\n";

    /// A state folder, where the tests run as root.
    fn state(test: &str) -> Option<tempfile::TempDir> {
        if rustix::process::geteuid().is_root() {
            return Some(tempfile::tempdir().unwrap());
        }
        eprintln!("SKIP: {test}: needs root");
        None
    }

    fn only_file(state: &Path) -> PathBuf {
        let found: Vec<_> = fs::read_dir(state).unwrap().flatten().collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].path()
    }

    #[test]
    fn it_is_written_once_and_found_by_the_next() {
        let Some(state) = state("it_is_written_once_and_found_by_the_next") else {
            return;
        };
        let older = state.path().join(format!("{PREFIX}of-another-boot"));
        fs::write(&older, "older").unwrap();
        let first = hold(state.path(), PROGRAM).unwrap();
        let second = hold(state.path(), PROGRAM).unwrap();
        let of = |program: &InsideProgram| fs::metadata(program.path()).unwrap().ino();
        assert_eq!(of(&first), of(&second));
        assert_eq!(fs::read(only_file(state.path())).unwrap(), PROGRAM);
    }

    /// By root, to whom nothing is forbidden but by the mount.
    #[test]
    fn who_executes_it_can_neither_write_nor_change_it() {
        let Some(state) = state("who_executes_it_can_neither_write_nor_change_it") else {
            return;
        };
        let program = hold(state.path(), PROGRAM).unwrap();
        let refused = |done: io::Result<()>| {
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
        };
        refused(File::options().write(true).open(program.path()).map(drop));
        refused(fs::write(program.path(), "other"));
        refused(fs::set_permissions(
            program.path(),
            fs::Permissions::from_mode(0o777),
        ));
        assert_eq!(fs::read(program.path()).unwrap(), PROGRAM);
    }

    #[test]
    fn one_that_somebody_else_may_have_changed_is_not_taken() {
        let Some(state) = state("one_that_somebody_else_may_have_changed_is_not_taken") else {
            return;
        };
        hold(state.path(), PROGRAM).unwrap();
        let file = only_file(state.path());
        let refused = || hold(state.path(), PROGRAM).unwrap_err().kind();

        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(refused(), io::ErrorKind::InvalidData);
        fs::set_permissions(&file, fs::Permissions::from_mode(MODE)).unwrap();
        hold(state.path(), PROGRAM).unwrap();

        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        assert_eq!(refused(), io::ErrorKind::InvalidData);
        std::os::unix::fs::chown(&file, Some(0), None).unwrap();

        let elsewhere = tempfile::tempdir_in(state.path().parent().unwrap()).unwrap();
        fs::hard_link(&file, elsewhere.path().join("second name")).unwrap();
        assert_eq!(refused(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_folder_that_is_not_roots_alone_holds_none() {
        let Some(state) = state("a_folder_that_is_not_roots_alone_holds_none") else {
            return;
        };
        fs::set_permissions(state.path(), fs::Permissions::from_mode(0o770)).unwrap();
        hold(state.path(), PROGRAM).unwrap_err();
        fs::set_permissions(state.path(), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(state.path(), Some(65534), None).unwrap();
        hold(state.path(), PROGRAM).unwrap_err();
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }
}
