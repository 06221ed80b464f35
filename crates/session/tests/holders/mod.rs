//! A conversation that goes from one gateway to another.

use hermetic_sandbox::SandboxPersistence;
use hermetic_session::{LeaseError, Sandboxes};
use hermetic_types::{ConversationKey, HolderEpoch};

use crate::lab::Lab;

fn alice() -> ConversationKey {
    ConversationKey::new("alice")
}

fn holding(sandboxes: Sandboxes, epoch: u64) -> Sandboxes {
    sandboxes.hold(&alice(), HolderEpoch::new(epoch));
    sandboxes
}

#[tokio::test]
async fn who_had_a_conversation_before_is_refused_its_sandbox_and_spares_it() {
    for persistence in [SandboxPersistence::Ephemeral, SandboxPersistence::Kept] {
        let lab = Lab::that_answers(persistence, 10).await;
        let first = holding(lab.restart(), 1);
        let lease = first.lease(&alice()).await.unwrap();
        assert_eq!(lease.holder(), HolderEpoch::new(1));
        let second = holding(lab.restart(), 2);
        let taken = second.lease(&alice()).await.unwrap();
        assert_eq!(taken.id(), lease.id());
        lease.warden().closed().await;
        drop(lease);
        for sandboxes in [&first, &holding(lab.restart(), 1)] {
            let refused = sandboxes.lease(&alice()).await.unwrap_err();
            assert!(
                matches!(refused, LeaseError::HeldElsewhere { since } if since.get() == 2),
                "{refused:?}"
            );
        }
        // Neither written off nor stopped, and the second one's link stands.
        assert!(taken.is_reachable());
        assert_eq!((lab.backend.living(), lab.backend.created()), (1, 1));
    }
}

#[tokio::test]
async fn who_has_it_again_uses_the_link_that_stands() {
    let lab = Lab::that_answers(SandboxPersistence::Ephemeral, 10).await;
    let sandboxes = holding(lab.restart(), 1);
    let before = sandboxes.lease(&alice()).await.unwrap();
    sandboxes.let_go_of(&alice());
    // Another one had it meanwhile and came to no sandbox.
    sandboxes.hold(&alice(), HolderEpoch::new(3));
    // An epoch only grows, whatever is heard late.
    sandboxes.hold(&alice(), HolderEpoch::new(2));
    let after = sandboxes.lease(&alice()).await.unwrap();
    assert_eq!(after.holder(), HolderEpoch::new(3));
    assert!(before.is_reachable() && std::sync::Arc::ptr_eq(before.sandbox(), after.sandbox()));
}

#[tokio::test]
async fn one_that_waited_for_nobody_is_told_whose_it_is() {
    let lab = Lab::that_answers(SandboxPersistence::Ephemeral, 10)
        .await
        .with_pool(1);
    lab.warm_up(1).await;
    lab.sandboxes.hold(&alice(), HolderEpoch::new(4));
    let lease = lab.lease("alice").await.unwrap();
    assert_eq!(lease.holder(), HolderEpoch::new(4));
    assert_eq!(lab.backend.created(), 1);
    let earlier = holding(lab.restart(), 3);
    let refused = earlier.lease(&alice()).await;
    assert!(matches!(refused, Err(LeaseError::HeldElsewhere { .. })));
}

#[tokio::test]
async fn a_gateway_that_shares_with_nobody_says_nothing() {
    // Its wardens greet and answer nothing else: a question would never come back.
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let lease = lab.lease("alice").await.unwrap();
    assert_eq!(lease.holder(), HolderEpoch::UNSHARED);
}

#[tokio::test]
async fn who_serves_since_later_has_every_conversation_and_hands_count_on_top() {
    let lab = Lab::that_answers(SandboxPersistence::Ephemeral, 10).await;
    let first = lab.restart().serving_since(HolderEpoch::new(10));
    let lease = first.lease(&alice()).await.unwrap();
    assert_eq!(lease.holder(), HolderEpoch::new(10));
    // Since when it serves says nothing of this conversation's changes of hands.
    assert!(!first.holds(&alice()));
    let next = lab.restart().serving_since(HolderEpoch::new(20));
    assert_eq!(
        next.lease(&alice()).await.unwrap().holder(),
        HolderEpoch::new(20)
    );
    // However often the conversation changed hands while the first one served.
    let earlier = holding(first, 3);
    let refused = earlier.lease(&alice()).await;
    assert!(matches!(refused, Err(LeaseError::HeldElsewhere { .. })));
    let later = holding(next, 1).lease(&alice()).await.unwrap();
    assert_eq!(later.holder(), HolderEpoch::new(21));
}
