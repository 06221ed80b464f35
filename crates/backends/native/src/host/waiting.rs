//! A cage that was started and waits for its plan.
//!
//! What a program does before its first line is a good part of what a sandbox costs: where the
//! processor is a virtual one, asking it about itself takes half a millisecond. So the cage is
//! started first, and what the host has to make and write down is made meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::Program;

use super::inner_death::InnerStderr;
use crate::cord::Cord;

/// It holds nothing and has heard nothing. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Waiting {
    parts: Option<(Cord, Child)>,
    /// Nothing where its stderr is somebody else's.
    stderr: Option<InnerStderr>,
    /// Who ends the house it stands in.
    keeper: Option<Keeper>,
}

/// Ends by itself when the cage has ended, and is our child.
#[derive(Debug)]
pub(super) struct Keeper(Child);

impl Waiting {
    /// A plain spawn: no fork of a process with threads, and nothing inherited but the cord.
    pub(super) fn start(program: &Program) -> Result<Self, BackendError> {
        let (cord, end) =
            Cord::pair().map_err(|source| BackendError::failed("make the cord", source))?;
        let (stderr, theirs) = InnerStderr::pipe()
            .map_err(|source| BackendError::failed("make a pipe for the cage", source))?;
        let child = spawn(program, &[], Stdio::from(end), Stdio::null(), theirs)?;
        Ok(Self {
            parts: Some((cord, child)),
            stderr: Some(stderr),
            keeper: None,
        })
    }

    /// One that knocked at its door; the child is who made its house.
    pub(super) fn housed(cord: Cord, maker: Child, keeper: Option<Keeper>) -> Self {
        Self {
            parts: Some((cord, maker)),
            stderr: None,
            keeper,
        }
    }

    pub(super) fn into_parts(mut self) -> (Cord, Child, Option<InnerStderr>, Option<Keeper>) {
        let (cord, child) = self
            .parts
            .take()
            .expect("the parts are only taken here, and here takes self");
        (cord, child, self.stderr.take(), self.keeper.take())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((cord, mut child)) = self.parts.take() {
            drop(cord);
            let _ = child.wait();
        }
    }
}

/// It has one signal to send.
const SEEING_OUT: Duration = Duration::from_secs(2);

impl Keeper {
    /// Waits for the one to end and then ends the other, whoever of us is still there.
    pub(super) fn start(
        program: &Program,
        cage: OwnedFd,
        house: OwnedFd,
    ) -> Result<Self, BackendError> {
        let stderr = Stdio::null();
        spawn(program, &["--keeper"], cage.into(), house.into(), stderr).map(Self)
    }

    /// Collects it, for one who knows that the cage has ended.
    pub(super) fn see_out(mut self) {
        let deadline = Instant::now() + SEEING_OUT;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn spawn(
    program: &Program,
    words: &[&str],
    stdin: Stdio,
    stdout: Stdio,
    stderr: Stdio,
) -> Result<Child, BackendError> {
    Command::new(program.path())
        .arg0("hermetic-cage")
        .arg("cage")
        .args(words)
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => BackendError::Unavailable {
                what: "the kernel does not let a memory file be executed".to_owned(),
                remedy: "sysctl vm.memfd_noexec=0".to_owned(),
            },
            _ => BackendError::failed("start the cage", source),
        })
}
