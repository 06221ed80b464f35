//! The sandboxes this very process started: it is their parent and must collect them, and it holds
//! the cords of those that are to die with it.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_types::SandboxId;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::inner_death;
use super::sys;
use super::waiting::Keeper;
use crate::cord::Cord;

#[derive(Debug)]
pub(super) struct Born {
    pub(super) id: SandboxId,
    pub(super) pidfd: Arc<OwnedFd>,
    /// Present where the sandbox is tied to us.
    pub(super) tie: Option<Tie>,
    /// Present where it stands in a house.
    pub(super) keeper: Option<Keeper>,
}

/// Letting go of the cord ends the sandbox; the guard then ends by itself.
#[derive(Debug)]
pub(super) struct Tie {
    pub(super) cord: Cord,
    pub(super) guard: Child,
}

#[derive(Debug, Default)]
pub(super) struct Kin(Mutex<HashMap<SandboxId, Member>>);

#[derive(Debug)]
struct Member {
    reaper: JoinHandle<()>,
    /// Held for what dropping it does.
    _tie: Option<Tie>,
    keeper: Option<Keeper>,
}

impl Kin {
    /// Must be called within a runtime. What comes back hears how the sandbox's first process ended.
    pub(super) fn adopt(&self, born: Born) -> oneshot::Receiver<Option<String>> {
        let (tell, told) = oneshot::channel();
        let reaper = tokio::spawn(async move {
            let _ = tell.send(collect(born.pidfd).await);
        });
        let member = Member {
            reaper,
            _tie: born.tie,
            keeper: born.keeper,
        };
        let before = self.members().insert(born.id, member);
        drop(before);
        told
    }

    pub(super) fn part(&self, id: &SandboxId) {
        let member = self.members().remove(id);
        if let Some(keeper) = member.and_then(|mut member| member.keeper.take()) {
            keeper.see_out();
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, HashMap<SandboxId, Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.reaper.abort();
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        // The guard may still be waiting for the end that is under way; it needs no help to see it,
        // but it is our child.
        let _ = rustix::net::shutdown(self.cord.as_fd(), rustix::net::Shutdown::Both);
        let _ = self.guard.wait();
    }
}

/// A sandbox that ends by itself would otherwise stay in the process table until we do.
async fn collect(pidfd: Arc<OwnedFd>) -> Option<String> {
    let pidfd = sys::readable(pidfd).ok()?;
    let _ended = pidfd.readable().await.ok()?;
    inner_death::collect(pidfd.get_ref().as_fd())
}
