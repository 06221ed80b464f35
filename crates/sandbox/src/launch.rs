//! The half of a start that is the same wherever a provider makes the sandbox.

use hermetic_types::SandboxId;
use tokio::sync::oneshot;

use crate::{BackendError, WardenLink};

/// Brings a start to its end, whether or not the caller waits for it.
///
/// Cut in the middle, a request would leave a sandbox that the provider is still making. So `start` runs
/// in a task of its own, and what it made for a caller who has gone is seen out by `discard`, which runs
/// in no other case.
pub async fn launch(
    id: &SandboxId,
    start: impl Future<Output = Result<WardenLink, BackendError>> + Send + 'static,
    discard: impl Future<Output = Result<(), BackendError>> + Send + 'static,
) -> Result<WardenLink, BackendError> {
    let (hand_over, handed) = oneshot::channel();
    let id = id.clone();
    tokio::spawn(async move {
        // What comes back from the send is what nobody took: a sandbox that nobody will ever ask
        // for.
        if let Err(Ok(unwanted)) = hand_over.send(start.await) {
            // The link first: it keeps the sandbox busy.
            drop(unwanted);
            if let Err(error) = discard.await {
                tracing::warn!(sandbox = %id, %error, "an unwanted sandbox is left");
            }
        }
    });
    let lost = |error| Err(BackendError::failed("finish the start", error));
    handed.await.unwrap_or_else(lost)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_seen_out() {
        let (go, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begin, end) = (Arc::clone(&go), Arc::clone(&gone));
        let start = async move {
            begin.notified().await;
            Ok(WardenLink::new(tokio::io::empty()))
        };
        let discard = async move {
            end.notify_one();
            Ok(())
        };
        let id = SandboxId::random();
        let launching = launch(&id, start, discard);
        // Polled once, so that it has begun, and then given up.
        assert!(launching.now_or_never().is_none());
        go.notify_one();
        gone.notified().await;
    }

    #[tokio::test]
    async fn what_is_wanted_stays() {
        let discarded = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&discarded);
        let start = async { Ok(WardenLink::new(tokio::io::empty())) };
        let discard = async move {
            mark.store(true, Ordering::Relaxed);
            Ok(())
        };
        launch(&SandboxId::random(), start, discard).await.unwrap();
        tokio::task::yield_now().await;
        assert!(!discarded.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_start_that_panics_is_a_failure() {
        let start = async { panic!("while it was made") };
        let error = launch(&SandboxId::random(), start, async { Ok(()) }).await;
        assert!(matches!(error, Err(BackendError::Failed { .. })));
    }
}
