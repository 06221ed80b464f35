//! A command that stands in for a shell and says where it has ended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::pipe::{PipeFlags, pipe_with};

use super::state::WardenState;
use crate::protocol::{ByteString, PLACE};

/// As the kernel has it.
const LONGEST_PATH: usize = 4096;

/// The pipe by which a command tells the directory in which it ended.
#[derive(Debug)]
pub(super) struct CwdReport {
    shell: String,
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl CwdReport {
    pub(super) fn open(shell: &str) -> io::Result<Self> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Self {
            shell: shell.to_owned(),
            ours,
            theirs,
        })
    }

    pub(super) fn theirs(&self) -> (BorrowedFd<'_>, i32) {
        (self.theirs.as_fd(), PLACE)
    }

    /// The shell is where the command said, if it said anything that can be.
    pub(super) fn follow(self, warden: &Rc<WardenState>) -> Option<ByteString> {
        let mut bytes = [0; LONGEST_PATH + 1];
        // What others of the command write later is not waited for.
        // One read: the line is shorter than what a pipe takes at once, so it is there whole or not
        // at all.
        let length = rustix::io::read(&self.ours, &mut bytes).ok()?;
        let path = bytes[..length].strip_suffix(b"\n")?;
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }
        let place = ByteString(path.to_vec());
        warden.shells.set_place(warden, &self.shell, place.clone());
        Some(place)
    }
}
