//! Where the clients' sandboxes are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermetic_sandbox::{Backend, Spec};
use hermetic_tools::Kit;
use hermetic_types::{ConversationKey, SandboxId};
use tokio_util::task::TaskTracker;

/// What all clients share. Clones share it too.
#[derive(Clone, Debug)]
pub struct House(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kit: Kit,
    backend: Arc<dyn Backend>,
    spec: Spec,
    most: usize,
    taken: AtomicUsize,
    next: AtomicUsize,
    /// Sandboxes being made and being taken down: neither is cut in the middle.
    works: TaskTracker,
}

impl House {
    /// Every sandbox is made from `spec`, under a name of its own; at most so many at once.
    pub fn new(kit: Kit, backend: Arc<dyn Backend>, spec: Spec, most: usize) -> Self {
        Self(Arc::new(Inner {
            kit,
            backend,
            spec,
            most,
            taken: AtomicUsize::new(0),
            next: AtomicUsize::new(1),
            works: TaskTracker::new(),
        }))
    }

    /// Returns when every sandbox is gone. No client may be there any more.
    pub async fn close(&self) {
        self.0.works.close();
        self.0.works.wait().await;
    }

    pub(crate) fn kit(&self) -> &Kit {
        &self.0.kit
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    pub(crate) fn works(&self) -> &TaskTracker {
        &self.0.works
    }

    pub(crate) fn next_client(&self) -> ConversationKey {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        ConversationKey::new(format!("mcp:{}:{number}", std::process::id()))
    }

    pub(crate) fn spec(&self, conversation: &ConversationKey) -> Spec {
        Spec {
            conversation: conversation.clone(),
            id: SandboxId::random(),
            ..self.0.spec.clone()
        }
    }

    /// Says whether there is room for one more.
    pub(crate) fn take_place(&self) -> bool {
        let more = |taken: usize| (taken < self.0.most).then_some(taken + 1);
        let taken = &self.0.taken;
        taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_ok()
    }

    pub(crate) fn give_place_back(&self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}
