//! What a command is connected to: pipes, or a terminal.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::output::OutputSource;
use crate::protocol::frame::FrameKind;
use crate::protocol::{OutputStreams, RunRequest, StdinMode, WindowSize};

/// Both ends of everything the command is connected to.
pub(super) struct CommandStreams {
    /// The command's 0, 1 and 2.
    pub(super) theirs: Vec<OwnedFd>,
    pub(super) sources: Vec<OutputSource>,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) terminal: Option<OwnedFd>,
}

impl CommandStreams {
    pub(super) fn open(request: &RunRequest) -> std::io::Result<Self> {
        if let OutputStreams::Pty(size) = request.output {
            return Self::terminal(size, &request.stdin);
        }
        let (stdin_theirs, stdin) = match request.stdin {
            StdinMode::Empty => (dev_null()?, None),
            StdinMode::Open => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                // Only our end: the command's is blocking, as a program expects of its stdin.
                rustix::io::ioctl_fionbio(&write, true)?;
                (read, Some(write))
            }
        };
        let (out, out_theirs) = OutputSource::pipe(FrameKind::Out)?;
        let (sources, err_theirs) = if request.output == OutputStreams::Merged {
            (vec![out], out_theirs.try_clone()?)
        } else {
            let (err, err_theirs) = OutputSource::pipe(FrameKind::Err)?;
            (vec![out, err], err_theirs)
        };
        Ok(Self {
            theirs: vec![stdin_theirs, out_theirs, err_theirs],
            sources,
            stdin,
            terminal: None,
        })
    }

    fn terminal(size: WindowSize, stdin: &StdinMode) -> std::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, winsize(size))?;
        // By the master and not by a name below `/dev/pts`, which may be that of another instance
        // here.
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        Ok(Self {
            theirs: vec![slave.try_clone()?, slave.try_clone()?, slave],
            stdin: (*stdin == StdinMode::Open)
                .then(|| master.try_clone())
                .transpose()?,
            terminal: Some(master.try_clone()?),
            sources: vec![OutputSource::terminal(master)?],
        })
    }
}

pub(super) fn winsize(size: WindowSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn dev_null() -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}
