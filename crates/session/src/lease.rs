//! The right to use a conversation's sandbox for a while.

use std::ops::Deref;
use std::sync::Arc;

use hermetic_sandbox::Sandbox;
use tokio::sync::Notify;

use crate::SetAside;
use crate::slot::SandboxSlot;

/// While one is held, the sandbox is not let go for being idle. Dropping the last one starts the
/// clock.
#[derive(Debug)]
pub struct SandboxLease {
    sandbox: Arc<Sandbox>,
    slot: Arc<SandboxSlot>,
    changed: Arc<Notify>,
    set_aside: Option<SetAside>,
}

impl SandboxLease {
    /// Takes over a lease that was already counted with [`SandboxSlot::take_lease`].
    pub(crate) fn counted(
        sandbox: Arc<Sandbox>,
        slot: Arc<SandboxSlot>,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            sandbox,
            slot,
            changed,
            set_aside: None,
        }
    }

    pub(crate) fn leaving_behind(mut self, set_aside: Option<SetAside>) -> Self {
        self.set_aside = set_aside;
        self
    }

    /// The sandbox that was set aside for this one just now. Whose files are in it wants to know.
    pub fn set_aside(&self) -> Option<&SetAside> {
        self.set_aside.as_ref()
    }

    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }
}

impl Deref for SandboxLease {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Drop for SandboxLease {
    fn drop(&mut self) {
        // Returned before the reaper is woken, which would otherwise find it held and look again a
        // minute later.
        self.slot.return_lease();
        self.changed.notify_one();
    }
}
