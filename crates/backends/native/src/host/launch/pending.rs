//! A cage that is being built: the processes that take part, and what they report.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;

use hermetic_sandbox::host::{self as process, ProcessHandle};
use hermetic_sandbox::{BackendError, SandboxLifeline, SandboxSpec};

use super::LAUNCH_TIMEOUT;
use crate::control_socket::ControlSocket;
use crate::host::children::{CreatorLifeline, NewChild};
use crate::host::folder::SandboxFolder;
use crate::host::inner_death::{self, InnerStderr};
use crate::host::native::{NativeHost, RequiredLayer, missing};
use crate::host::remedy;
use crate::host::waiting_cage::ContainerKeeper;
use crate::plan::{CageReport, GO};

/// The report of a cage in which nothing is open any more.
pub(super) struct SealedCage {
    /// The ABI that holds.
    pub(super) landlock: Option<u8>,
    pub(super) exit: Option<TcpListener>,
}

/// The processes between the spawn and the confirmation. Dropped, it ends all of them.
pub(super) struct PendingLaunch {
    pub(super) outer: Option<Child>,
    pub(super) pidfd: Option<Arc<OwnedFd>>,
    pub(super) stderr: Option<InnerStderr>,
    pub(super) keeper: Option<ContainerKeeper>,
}

impl PendingLaunch {
    pub(super) fn finish(
        mut self,
        host: &NativeHost,
        control: ControlSocket,
        folder: &SandboxFolder,
        spec: &SandboxSpec,
    ) -> Result<(NewChild, SealedCage, Option<InnerStderr>), BackendError> {
        let sealed = self.await_seal(&control, folder)?;
        // Judged here and not in the cage, which keeps no policy. It may run by now, but nobody has
        // its link; leaving drops `self`, which ends it.
        if sealed.landlock.is_none() && host.demands(RequiredLayer::Landlock) {
            return Err(BackendError::Unavailable {
                what: "this kernel has no Landlock, which the configuration requires".to_owned(),
                remedy: "boot a kernel since 5.13 with landlock in its lsm= list".to_owned(),
            });
        }
        let pidfd = self.pidfd.take().ok_or_else(|| missing(&spec.id))?;
        let outer = self.outer.take();
        let lifeline = match (spec.lifeline, outer) {
            (SandboxLifeline::Creator, Some(guard)) => Some(CreatorLifeline { control, guard }),
            (_, outer) => {
                // It has reported, which was its last act.
                if let Some(mut outer) = outer {
                    let _ = outer.wait();
                }
                None
            }
        };
        let started = NewChild {
            id: spec.id.clone(),
            pidfd,
            lifeline,
            keeper: self.keeper.take(),
        };
        Ok((started, sealed, self.stderr.take()))
    }

    /// A closed control socket means that the cage died; then why is worth more than that.
    pub(super) fn why_silent(&mut self, source: io::Error) -> io::Error {
        let Some(stderr) = &self.stderr else {
            return source;
        };
        let died = [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
        ];
        if !died.contains(&source.kind()) {
            return source;
        }
        // The inner one is the cause where it exists; the outer one held the control socket until it ended.
        let inner = self.pidfd.as_deref().and_then(|pidfd| {
            process::wait_for_end(pidfd.as_fd(), LAUNCH_TIMEOUT);
            inner_death::collect(pidfd.as_fd())
        });
        let outer = || {
            let status = self.outer.as_mut()?.wait().ok()?;
            Some(format!("ended ({status})"))
        };
        let ended = inner.or_else(outer);
        match inner_death::explain(ended.as_deref(), stderr.said().as_deref()) {
            Some(why) => io::Error::new(source.kind(), why),
            None => source,
        }
    }

    /// Two processes report over one control socket, so the order is open. The process is written down while
    /// it builds its cage, and is told so at once: the word waits for it in the socket, and it need not
    /// wait for us when it is sealed. Until this returns nobody has the link, so it serves nobody.
    fn await_seal(
        &mut self,
        control: &ControlSocket,
        folder: &SandboxFolder,
    ) -> Result<SealedCage, BackendError> {
        let (mut started, mut sealed, mut failure) = (false, None, None);
        loop {
            match (started, sealed.take(), failure.take()) {
                (true, Some(sealed), None) => return Ok(sealed),
                (true, _, Some(error)) => return Err(error),
                (_, before, kept) => (sealed, failure) = (before, kept),
            }
            let (report, mut fds) = match control.receive::<CageReport>() {
                Ok(received) => received,
                Err(source) => {
                    return Err(failure.unwrap_or_else(|| {
                        BackendError::failed("hear from the cage", self.why_silent(source))
                    }));
                }
            };
            match report {
                CageReport::Born => {
                    started = true;
                    self.pidfd = fds.pop().map(Arc::new);
                    let pid = self.pidfd.as_deref().and_then(pid_here);
                    let process = pid
                        // Seen through the pidfd that we hold, so that the number cannot have gone
                        // to another process meanwhile.
                        .and_then(ProcessHandle::observe)
                        .ok_or_else(|| missing(&folder.id))?;
                    folder
                        .note_life(&process)
                        .map_err(|source| BackendError::failed("write down the process", source))?;
                    // One that died meanwhile has said why, or its silence tells.
                    let _ = control.send_bytes(GO, &[]);
                }
                CageReport::Ready { landlock } => {
                    tracing::debug!(sandbox = %folder.id, landlock, "sealed");
                    let exit = fds.pop().map(TcpListener::from);
                    sealed = Some(SealedCage { landlock, exit });
                }
                CageReport::Failed { step, errno } => {
                    failure = Some(remedy::explain(&step, errno));
                }
            }
        }
    }
}

/// Returns the process number as this process counts: in an outer container they count differently.
fn pid_here(pidfd: &OwnedFd) -> Option<i32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok().filter(|&pid| pid > 0)
}

impl Drop for PendingLaunch {
    fn drop(&mut self) {
        // The first process of the sandbox first: its end is the end of everything inside, whoever
        // of the others is slow.
        if let Some(pidfd) = self.pidfd.take() {
            process::kill(pidfd.as_fd(), LAUNCH_TIMEOUT);
        }
        if let Some(mut outer) = self.outer.take() {
            let _ = outer.kill();
            let _ = outer.wait();
        }
        if let Some(keeper) = self.keeper.take() {
            keeper.reap();
        }
    }
}
