//! Files that a person kept are never deleted by a side effect.

use std::time::Duration;

use hermetic_sandbox::{FoundState, SandboxPersistence};
use hermetic_session::{LeaseError, Sandboxes};
use hermetic_store::LedgerState;
use hermetic_types::{BackendKind, ConversationKey, SandboxId};

use crate::lab::Lab;

const WHOSE: &str = "agent:main:webhook:dm:7";

async fn id_of(sandboxes: &Sandboxes) -> SandboxId {
    let lease = sandboxes.lease(&ConversationKey::new(WHOSE)).await;
    lease.unwrap().id().clone()
}

#[tokio::test]
async fn another_backend_leaves_them_and_coming_back_finds_them() {
    // Alive when the other backend takes over, and long stopped.
    for idle in [false, true] {
        let lab = Lab::new(SandboxPersistence::Kept, 10).await;
        let old = id_of(&lab.sandboxes).await;
        if idle {
            lab.pass(Duration::from_secs(3600)).await;
        }
        let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
        elsewhere.sandboxes.settle().await.unwrap();
        let key = ConversationKey::new(WHOSE);
        let lease = elsewhere.sandboxes.lease(&key).await.unwrap();
        let told = lease.set_aside().expect("nobody is told").clone();
        assert_eq!((&told.id, told.backend), (&old, BackendKind::Native));
        assert!(told.to_string().contains("hermetic sandbox destroy"));
        let new = lease.id().clone();
        drop(lease);
        let again = elsewhere.sandboxes.lease(&key).await.unwrap();
        assert_eq!(again.set_aside(), None, "told with every call");

        // A start between the two deletes nothing either, and what is set aside does not run.
        elsewhere.sandboxes.settle().await.unwrap();
        assert_eq!(
            (lab.backend.living(), lab.backend.ids()),
            (0, vec![old.clone()])
        );

        let back = lab.restart();
        back.settle().await.unwrap();
        assert_eq!(id_of(&back).await, old);
        let onward = lab.with_webhooks_on(BackendKind::Docker);
        assert_ne!(id_of(&onward.sandboxes).await, new, "another engine");
        assert_eq!(lab.backend.created(), 1);
    }
}

#[tokio::test]
async fn both_backends_find_their_own_again_and_again() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let here = id_of(&lab.sandboxes).await;
    let there = id_of(&elsewhere.sandboxes).await;
    for _ in 0..3 {
        assert_eq!(id_of(&elsewhere.sandboxes).await, there);
        // Another process with another configuration, as command lines are.
        let back = lab.with_webhooks_on(BackendKind::Docker).only_with(&lab);
        back.settle().await.unwrap();
        assert_eq!(id_of(&back).await, here);
        let again = lab.only_with(&elsewhere);
        assert_eq!(id_of(&again).await, there);
    }
    assert_eq!((lab.backend.created(), elsewhere.backend.created()), (1, 1));
    assert_eq!(lab.states().await.len(), 2);
}

#[tokio::test]
async fn a_backend_that_cannot_be_opened_any_more_keeps_its_row_and_blocks_nobody() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let old = id_of(&lab.sandboxes).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let without = lab.only_with(&elsewhere);
    without.settle().await.unwrap();
    assert_ne!(id_of(&without).await, old);
    assert!(lab.ledger().find(&old).await.unwrap().is_some());
    assert_eq!(lab.backend.ids(), std::slice::from_ref(&old));
    assert_eq!(id_of(&lab.restart()).await, old);
}

#[tokio::test]
async fn asked_for_while_its_backend_is_missing_its_end_comes_later() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    id_of(&lab.sandboxes).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let without = lab.only_with(&elsewhere);
    id_of(&without).await;
    let key = ConversationKey::new(WHOSE);
    assert!(without.reset(&key).await.is_err());
    assert_eq!(
        (lab.backend.ids().len(), elsewhere.backend.ids().len()),
        (1, 0)
    );
    lab.restart().settle().await.unwrap();
    assert_eq!((lab.backend.ids(), lab.states().await), (vec![], vec![]));
}

#[tokio::test]
async fn one_of_two_is_destroyed_and_the_other_stays() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let old = id_of(&lab.sandboxes).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let key = ConversationKey::new(WHOSE);
    let lease = elsewhere.sandboxes.lease(&key).await.unwrap();
    let new = lease.id().clone();
    // The one that was set aside, while the other is in use.
    elsewhere.sandboxes.destroy_one(&key, &old).await.unwrap();
    assert_eq!((lab.backend.ids(), lab.states().await.len()), (vec![], 1));
    assert_eq!(id_of(&elsewhere.sandboxes).await, new);
    // The one in use, kept or not, and twice.
    for _ in 0..2 {
        elsewhere.sandboxes.destroy_one(&key, &new).await.unwrap();
        assert_eq!(
            (elsewhere.backend.ids(), lab.states().await),
            (vec![], vec![])
        );
    }
    drop(lease);
    assert_ne!(id_of(&elsewhere.sandboxes).await, new, "another one");
    // One of this name is nobody's, whoever asks.
    let other = ConversationKey::new("agent:main:webhook:dm:8");
    assert!(elsewhere.sandboxes.destroy_one(&other, &new).await.is_ok());
    assert_eq!(elsewhere.backend.ids().len(), 1);
}

#[tokio::test]
async fn ephemeral_ones_go() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    id_of(&lab.sandboxes).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let key = ConversationKey::new(WHOSE);
    let lease = elsewhere.sandboxes.lease(&key).await.unwrap();
    assert_eq!(lease.set_aside(), None);
    assert_eq!((lab.backend.ids(), lab.states().await.len()), (vec![], 1));
}

#[tokio::test]
async fn one_that_cannot_be_started_again_is_not_replaced() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let old = id_of(&lab.sandboxes).await;
    let again = lab.restart();
    lab.backend.halt(&old);
    again.settle().await.unwrap();
    // No room, no image, another user: whatever it is, it may pass.
    lab.backend.fail_resumes(true);
    for _ in 0..2 {
        let refused = again.lease(&ConversationKey::new(WHOSE)).await.unwrap_err();
        assert!(
            matches!(&refused, LeaseError::NotBack { id, .. } if *id == old),
            "{refused}"
        );
    }
    lab.backend.fail_resumes(false);
    assert_eq!(id_of(&again).await, old);
}

#[tokio::test]
async fn one_whose_stop_failed_comes_back() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let old = id_of(&lab.sandboxes).await;
    lab.backend.fail_stops(true);
    lab.pass(Duration::from_secs(3600)).await;
    assert_eq!(
        lab.states().await,
        [(WHOSE.to_owned(), LedgerState::Stopping)]
    );
    assert!(lab.lease(WHOSE).await.is_err());
    lab.backend.fail_stops(false);
    assert_eq!(id_of(&lab.sandboxes).await, old);
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn one_that_its_backend_does_not_find_is_remembered() {
    for settled in [false, true] {
        let lab = Lab::new(SandboxPersistence::Kept, 10).await;
        let old = id_of(&lab.sandboxes).await;
        lab.backend.hide(&old);
        let again = lab.restart();
        if settled {
            again.settle().await.unwrap();
        }
        let lease = again.lease(&ConversationKey::new(WHOSE)).await.unwrap();
        assert_ne!(lease.id(), &old);
        let told = lease.set_aside().expect("nobody is told");
        assert_eq!((&told.id, told.found), (&old, false));
        let new = lease.id().clone();
        drop(lease);
        // The engine of before: what was made meanwhile is not there, and the old one is.
        lab.backend.hide(&new);
        lab.backend.show(&old);
        let back = lab.restart();
        back.settle().await.unwrap();
        assert_eq!(id_of(&back).await, old);
        assert_eq!(lab.states().await.len(), 2);
    }
}

#[tokio::test]
async fn a_ledger_that_was_lost_costs_nobody_his_files() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    lab.backend.make_stray(FoundState::Stopped);
    lab.backend.make_stray(FoundState::Running);
    lab.backend.make_stray(FoundState::Broken);
    let settled = lab.sandboxes.settle().await.unwrap();
    assert_eq!((settled.destroyed, settled.left), (1, 2));
    assert_eq!((lab.backend.living(), lab.backend.ids().len()), (0, 2));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_in_doubt_and_kept() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let id = lab.name_only(WHOSE).await;
    lab.ledger().mark(&id, LedgerState::Stopped).await.unwrap();
    lab.backend.halt(&id);
    lab.sandboxes.settle().await.unwrap();
    assert!(lab.lease(WHOSE).await.is_err());
    assert_eq!(lab.backend.ids(), [id]);
}

#[tokio::test]
async fn a_change_of_persistence_is_for_new_ones() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let old = id_of(&lab.sandboxes).await;
    let now_ephemeral = lab.with_persistence(SandboxPersistence::Ephemeral);
    now_ephemeral.settle().await.unwrap();
    assert_eq!(id_of(&now_ephemeral).await, old);
    lab.backend.halt(&old);
    assert_eq!(
        id_of(&lab.with_persistence(SandboxPersistence::Ephemeral)).await,
        old
    );
}

#[tokio::test]
async fn asked_for_their_end_all_of_them_go() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    id_of(&lab.sandboxes).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    id_of(&elsewhere.sandboxes).await;
    let key = ConversationKey::new(WHOSE);
    lab.backend.go_down(true);
    assert!(elsewhere.sandboxes.reset(&key).await.is_err());
    assert_eq!(elsewhere.backend.ids(), [], "one failure held up the other");
    lab.backend.go_down(false);
    elsewhere.pass(Duration::from_secs(600)).await;
    assert_eq!((lab.backend.ids(), lab.states().await), (vec![], vec![]));
}
