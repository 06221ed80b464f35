//! Whoever asks goes away in the middle, and what does the work breaks down.

use std::time::Duration;

use futures::FutureExt;
use hermetic_sandbox::SandboxPersistence;
use hermetic_store::LedgerState;
use hermetic_types::ConversationKey;
use tokio::time::timeout;

use crate::HOUR;
use crate::lab::Lab;

const PATIENCE: Duration = Duration::from_secs(20);

async fn until_it_stands_so(lab: &Lab, states: &[(&str, LedgerState)]) {
    let so = async {
        loop {
            let found = lab.states().await;
            let found: Vec<_> = found.iter().map(|(who, state)| (&**who, *state)).collect();
            if found == states {
                return;
            }
        }
    };
    timeout(PATIENCE, so).await.expect("an end that was begun");
}

#[tokio::test]
async fn an_end_goes_on_when_nobody_waits_for_it() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let alice = ConversationKey::new("alice");
    drop(lab.lease("alice").await.unwrap());
    // Polled once, and dropped: as by a client who hangs up.
    let ended = lab.sandboxes.end_tenancy(&alice).now_or_never();
    assert!(ended.is_none(), "it was over before anybody could leave");
    until_it_stands_so(&lab, &[("alice", LedgerState::Stopped)]).await;
    let destroyed = lab.sandboxes.reset(&alice).now_or_never();
    assert!(destroyed.is_none());
    until_it_stands_so(&lab, &[]).await;
    assert_eq!(lab.backend.ids(), []);
}

#[tokio::test]
async fn rows_on_their_way_out_that_nobody_is_at_work_on_are_seen_out() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    for (who, state) in [
        ("alice", LedgerState::Stopping),
        ("bob", LedgerState::Destroying),
    ] {
        let id = lab.lease(who).await.unwrap().id().clone();
        // Begun, and neither ended nor failed.
        lab.ledger().mark(&id, state).await.unwrap();
    }
    lab.pass(Duration::from_secs(60)).await;
    let stopped = [("alice".to_owned(), LedgerState::Stopped)];
    assert_eq!(lab.states().await, stopped);
    assert_eq!(lab.backend.living(), 0);
}

#[tokio::test]
async fn a_create_that_breaks_down_leaves_nobody_counted() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    lab.backend.break_creates(true);
    assert!(lab.lease("alice").await.is_err());
    lab.backend.break_creates(false);
    lab.pass(HOUR).await;
    drop(lab.lease("alice").await.unwrap());
    lab.pass(HOUR).await;
    assert_eq!(lab.backend.living(), 0, "it looks as if somebody used it");
}

#[tokio::test]
async fn a_create_that_breaks_down_does_not_close_the_pool() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10)
        .await
        .with_pool(1);
    lab.backend.break_creates(true);
    lab.pass(Duration::from_secs(60)).await;
    lab.backend.break_creates(false);
    let warm = timeout(PATIENCE, lab.warm_up(1)).await;
    warm.expect("somebody fills it again");
}
