//! The embedded program, held where nobody can change it: as a rule not a file that could be replaced, and
//! sealed so that not even a sandbox that finds its own `/proc/self/exe` can write to it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// The program that is started in sandboxes or becomes one.
#[derive(Debug)]
pub struct InsideProgram {
    held: OwnedFd,
    is_file: bool,
}

impl InsideProgram {
    pub fn seal(bytes: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create("warden", flags | MemfdFlags::EXEC) {
            // Kernels before 6.3 do not know the flag and need none.
            Err(rustix::io::Errno::INVAL) => memfd_create("warden", flags)?,
            created => created?,
        };
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        let fd = OwnedFd::from(file);
        // Sealed after it was written and before anybody executes it; `SEAL` keeps anybody from
        // taking the others off.
        fcntl_add_seals(
            &fd,
            SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )?;
        Ok(Self {
            held: fd,
            is_file: false,
        })
    }

    /// A file that whoever opened it has put out of reach of those who execute it.
    pub fn of_file(held: OwnedFd) -> Self {
        Self {
            held,
            is_file: true,
        }
    }

    /// Whether it is a file of a file system, to which rules about paths apply.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Good in a child of ours until it executes it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
    }
}
