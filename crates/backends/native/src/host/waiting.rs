//! A cage that was started and waits for its plan.
//!
//! What a program does before its first line is a good part of what a sandbox costs: where the
//! processor is a virtual one, asking it about itself takes half a millisecond. So the cage is
//! started first, and what the host has to make and write down is made meanwhile.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::Program;

use crate::cord::Cord;

/// It holds nothing and has heard nothing. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Waiting(Option<(Cord, Child)>);

impl Waiting {
    /// A plain spawn: no fork of a process with threads, and nothing inherited but the cord.
    pub(super) fn start(program: &Program) -> Result<Self, BackendError> {
        let (cord, end) =
            Cord::pair().map_err(|source| BackendError::failed("make the cord", source))?;
        let child = Command::new(program.path())
            .arg0("hermetic-cage")
            .arg("cage")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| match source.kind() {
                io::ErrorKind::PermissionDenied => BackendError::Unavailable {
                    what: "the kernel does not let a memory file be executed".to_owned(),
                    remedy: "sysctl vm.memfd_noexec=0".to_owned(),
                },
                _ => BackendError::failed("start the cage", source),
            })?;
        Ok(Self(Some((cord, child))))
    }

    pub(super) fn into_parts(mut self) -> (Cord, Child) {
        self.0
            .take()
            .expect("the parts are only taken here, and here takes self")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((cord, mut child)) = self.0.take() {
            drop(cord);
            let _ = child.wait();
        }
    }
}
