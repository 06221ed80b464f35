//! Stopping while people think.

use hermetic_store::MessageRow;
use hermetic_types::RequestId;

use crate::ApprovalRegistry;
use crate::approvals::WaitStage;

impl ApprovalRegistry {
    /// From here on nobody in this process waits for an answer: the next one will.
    pub fn leave(&self) {
        self.0.leaving.cancel();
    }

    /// Ends when this process is leaving and work on this message waits for a person. Whoever does
    /// that work is to be dropped then, which leaves everything as a crash would.
    pub async fn left_waiting(&self, message: MessageRow) {
        self.0.leaving.cancelled().await;
        loop {
            // Listened to before looking: a question in between is noticed.
            let begun = self.0.begun.notified();
            let asked = WaitStage::Answer(Some(message));
            if self.waited().values().any(|one| *one == asked) {
                return;
            }
            begun.await;
        }
    }

    /// Nothing is left to do for a question but to wait.
    pub(crate) fn waits(&self, id: &RequestId, message: Option<MessageRow>) {
        // Noted before they are woken: those who wait for this look at the map when they wake.
        self.waited().insert(id.clone(), WaitStage::Answer(message));
        self.0.begun.notify_waiters();
    }

    /// Nobody in this process waits for it any more.
    pub(crate) fn let_go(&self, id: &RequestId) {
        let mut waited = self.waited();
        waited.remove(id);
        self.0.metrics.waiting(waited.len());
        drop(waited);
        self.0.begun.notify_waiters();
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.0.leaving.is_cancelled()
    }
}
