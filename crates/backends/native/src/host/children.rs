//! The sandboxes this very process started: it is their parent and must collect them, and it holds
//! the control sockets of those that are to die with it.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_types::SandboxId;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::inner_death;
use super::sys;
use super::waiting_cage::ContainerKeeper;
use crate::control_socket::ControlSocket;

/// A sandbox that was just started.
#[derive(Debug)]
pub(super) struct NewChild {
    pub(super) id: SandboxId,
    pub(super) pidfd: Arc<OwnedFd>,
    /// Present where the sandbox is tied to us.
    pub(super) lifeline: Option<CreatorLifeline>,
    /// Present where it stands in an outer container.
    pub(super) keeper: Option<ContainerKeeper>,
}

/// Ties a sandbox to this process: closing the control socket ends the sandbox, and the guard then ends by
/// itself.
#[derive(Debug)]
pub(super) struct CreatorLifeline {
    pub(super) control: ControlSocket,
    pub(super) guard: Child,
}

/// The sandboxes that this process started.
#[derive(Debug, Default)]
pub(super) struct ChildSandboxes(Mutex<HashMap<SandboxId, ChildEntry>>);

/// A sandbox that this process started, and what must be held while it lives.
#[derive(Debug)]
struct ChildEntry {
    reaper: JoinHandle<()>,
    /// Held for what dropping it does.
    _lifeline: Option<CreatorLifeline>,
    keeper: Option<ContainerKeeper>,
}

impl ChildSandboxes {
    /// Must be called within a runtime. What comes back hears how the sandbox's first process ended.
    pub(super) fn adopt(&self, child: NewChild) -> oneshot::Receiver<Option<String>> {
        let (tell, told) = oneshot::channel();
        let reaper = tokio::spawn(async move {
            let _ = tell.send(collect(child.pidfd).await);
        });
        let member = ChildEntry {
            reaper,
            _lifeline: child.lifeline,
            keeper: child.keeper,
        };
        let before = self.members().insert(child.id, member);
        // Only now, with the lock let go: a lifeline that goes waits for its guard.
        drop(before);
        told
    }

    /// Forgets a sandbox that has ended, and collects its keeper.
    pub(super) fn remove(&self, id: &SandboxId) {
        let member = self.members().remove(id);
        if let Some(keeper) = member.and_then(|mut member| member.keeper.take()) {
            keeper.reap();
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, HashMap<SandboxId, ChildEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChildEntry {
    fn drop(&mut self) {
        self.reaper.abort();
    }
}

impl Drop for CreatorLifeline {
    fn drop(&mut self) {
        // The guard may still be waiting for the end that is under way; it needs no help to see it,
        // but it is our child.
        let _ = rustix::net::shutdown(self.control.as_fd(), rustix::net::Shutdown::Both);
        let _ = self.guard.wait();
    }
}

/// A sandbox that ends by itself would otherwise stay in the process table until we do.
async fn collect(pidfd: Arc<OwnedFd>) -> Option<String> {
    let pidfd = sys::readable(pidfd).ok()?;
    let _ended = pidfd.readable().await.ok()?;
    inner_death::collect(pidfd.get_ref().as_fd())
}
