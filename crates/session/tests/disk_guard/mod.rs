//! The disk that sandboxes share: who is stopped when all have too much, and who is told.

use std::time::Duration;

use hermetic_sandbox::SandboxPersistence;
use hermetic_session::DiskBounds;
use hermetic_store::LedgerState;
use hermetic_types::{ConversationKey, PartHealth};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::lab::Lab;

const MEGABYTE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn whoever_grew_most_is_stopped_when_all_have_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let lab = lab.with_disk_bounds(DiskBounds {
        folder: folder.path().to_owned(),
        reserve_bytes: MEGABYTE,
        most_bytes: Some(100 * MEGABYTE),
    });
    let (alice, bob) = (
        lab.lease("alice").await.unwrap(),
        lab.lease("bob").await.unwrap(),
    );
    lab.backend.uses(alice.id(), 60 * MEGABYTE);
    lab.backend.uses(bob.id(), 50 * MEGABYTE);
    let stop = CancellationToken::new();
    let guard = tokio::spawn({
        let (sandboxes, stop) = (lab.sandboxes.clone(), stop.clone());
        async move { sandboxes.guard_disk(stop).await }
    });
    counted_again(&lab, 0).await;
    lab.backend.uses(bob.id(), 55 * MEGABYTE);
    let bob = ConversationKey::new("bob");
    let told = stopped(&lab, &bob).await;
    assert!(told.contains("disk"), "{told}");
    assert_eq!(lab.sandboxes.why_stopped(&bob), None, "told twice");
    let bob_stopped = timeout(PATIENCE, async {
        loop {
            let states = lab.states().await;
            if states.contains(&("bob".to_owned(), LedgerState::Stopped)) {
                return states;
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    let states = bob_stopped.await.expect("it was never stopped");
    assert!(states.contains(&("alice".to_owned(), LedgerState::Running)));
    let degraded = lab.sandboxes.disk_health().health();
    assert!(matches!(degraded, PartHealth::Degraded { .. }));
    // Whoever was stopped may come back, to delete what is not needed.
    lab.lease("bob").await.unwrap();
    stop.cancel();
    guard.await.unwrap();
}

#[tokio::test]
async fn whoever_writes_slowly_is_seen_too() {
    const A_LITTLE: u64 = 200 << 10;
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let lab = lab.with_disk_bounds(DiskBounds {
        folder: folder.path().to_owned(),
        reserve_bytes: MEGABYTE,
        most_bytes: Some(100 * MEGABYTE),
    });
    let alice = lab.lease("alice").await.unwrap();
    let bob = lab.lease("bob").await.unwrap();
    lab.backend.uses(alice.id(), 105 * MEGABYTE);
    let stop = CancellationToken::new();
    let guard = tokio::spawn({
        let (sandboxes, stop) = (lab.sandboxes.clone(), stop.clone());
        async move { sandboxes.guard_disk(stop).await }
    });
    // Less each time than anybody is blamed for.
    let (alice_key, bob_key) = (ConversationKey::new("alice"), ConversationKey::new("bob"));
    let mut before = 0;
    for times in 0..3 {
        before = counted_again(&lab, before).await;
        lab.backend.uses(bob.id(), MEGABYTE + times * A_LITTLE);
    }
    stopped(&lab, &bob_key).await;
    assert_eq!(
        lab.sandboxes.why_stopped(&alice_key),
        None,
        "alice had much and wrote nothing"
    );
    stop.cancel();
    guard.await.unwrap();
}

/// Waits until the sandboxes were counted more than `before` times.
async fn counted_again(lab: &Lab, before: usize) -> usize {
    let counted = timeout(PATIENCE, async {
        loop {
            match lab.backend.disk_counts() {
                counts if counts > before => return counts,
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
    });
    counted.await.expect("nobody counts")
}

async fn stopped(lab: &Lab, conversation: &ConversationKey) -> &'static str {
    let told = timeout(PATIENCE, async {
        loop {
            if let Some(told) = lab.sandboxes.why_stopped(conversation) {
                return told;
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    told.await.expect("nobody was stopped")
}
