//! One conversation's place: empty, or with a living sandbox in it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_egress::EgressOwner;
use hermetic_sandbox::{Sandbox, SandboxSpec};
use hermetic_types::BackendKind;
use tokio::time::Instant;

use crate::EgressPort;

/// The gate is held while a sandbox is made, resumed, stopped or destroyed, so that concurrent
/// first calls of one conversation make one sandbox and a reset never races a create.
#[derive(Debug)]
pub(crate) struct SandboxSlot {
    pub(crate) gate: tokio::sync::Mutex<Option<SlotSandbox>>,
    /// Counts towards the bound on living sandboxes. Set before one is made, so that two newcomers
    /// cannot both take the last place.
    claimed: AtomicBool,
    leases: AtomicUsize,
    last_use: Mutex<Instant>,
    /// Who had this sandbox made or used it last; nobody knows after a restart until they come back.
    holder: Mutex<Option<SandboxHolder>>,
}

/// The person whose sandboxes are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SandboxHolder(String);

impl SandboxHolder {
    /// By any name that is one person's and nobody else's.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

#[derive(Debug)]
pub(crate) struct SlotSandbox {
    /// Where it is. An earlier configuration, or a command line, may have put it elsewhere.
    pub(crate) backend: BackendKind,
    pub(crate) spec: Arc<SandboxSpec>,
    /// Absent when it was adopted after a restart and nobody has spoken to it yet.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// Absent where there is no way out.
    pub(crate) egress_port: Option<EgressPort>,
}

/// Somebody who waits at the gate, counted as a lease. Dropped without becoming one, also by a panic, it is no
/// longer counted: a lease that nobody has would hold the sandbox for ever.
#[derive(Debug)]
pub(crate) struct CountedVisit(Option<Arc<SandboxSlot>>);

impl CountedVisit {
    pub(crate) fn begin(slot: &Arc<SandboxSlot>) -> Self {
        slot.take_lease();
        Self(Some(Arc::clone(slot)))
    }

    /// From here on the count is the lease's to give back.
    pub(crate) fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for CountedVisit {
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            slot.return_lease();
        }
    }
}

impl SlotSandbox {
    /// Counts what leaves from here on as this person's.
    pub(crate) fn leaves_for(&self, holder: Option<&SandboxHolder>) {
        if let (Some(port), Some(holder)) = (&self.egress_port, holder) {
            port.leaves_for(EgressOwner::named(holder.name()));
        }
    }

    /// Lets go of the sandbox; nothing of it is relayed any more afterwards.
    pub(crate) async fn close_outlet(self) {
        if let Some(egress_port) = self.egress_port {
            egress_port.close().await;
        }
    }
}

impl SandboxSlot {
    pub(crate) fn empty() -> Self {
        Self::with(None)
    }

    pub(crate) fn with(tenant: Option<SlotSandbox>) -> Self {
        Self {
            claimed: AtomicBool::new(tenant.is_some()),
            gate: tokio::sync::Mutex::new(tenant),
            leases: AtomicUsize::new(0),
            last_use: Mutex::new(Instant::now()),
            holder: Mutex::default(),
        }
    }

    pub(crate) fn claim(&self) {
        self.claimed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn vacate(&self) {
        self.claimed.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::SeqCst)
    }

    pub(crate) fn holder(&self) -> Option<SandboxHolder> {
        let holder = self.holder.lock();
        holder.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_holder(&self, holder: &SandboxHolder) {
        let mut noted = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        *noted = Some(holder.clone());
    }

    pub(crate) fn take_lease(&self) {
        self.leases.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn return_lease(&self) {
        // Touched before the lease is given back: seen the other way round, it would be idle since
        // its last use, which may be hours ago, and be let go on the spot.
        self.touch();
        self.leases.fetch_sub(1, Ordering::SeqCst);
    }

    /// The same for somebody who came to no sandbox: that is no use of it.
    pub(crate) fn return_untouched(&self) {
        self.leases.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn touch(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when nobody holds a lease; nothing while somebody does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        // Read before the count: a lease that is returned in between shows an earlier time than it
        // should, never one that is held as idle. Whoever lets go looks again behind the gate.
        let last_use = *self.last_use.lock().unwrap_or_else(PoisonError::into_inner);
        (self.leases.load(Ordering::SeqCst) == 0).then_some(last_use)
    }
}
