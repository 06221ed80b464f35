//! Two gateways on one store: each takes up its own work.

use hermetic_store::{MessageEnd, RowOwner, Store};
use hermetic_types::{BackendKind, GatewayId, SandboxId, SystemClock, Timestamp};

use crate::every_write::{ask, key, now, process};

async fn opened_by(path: &std::path::Path, gateway: &str) -> Store {
    let gateway: GatewayId = gateway.parse().unwrap();
    let opened = Store::open_as(path, gateway, SystemClock::shared()).await;
    opened.unwrap()
}

/// Leaves something open of every kind.
async fn leave_work(store: &Store, conversation: &str) {
    let (inbox, key) = (store.inbox(), key(conversation));
    let (first, second) = (format!("{conversation}:1"), format!("{conversation}:2"));
    let ended = inbox.accept("t", &first, &key, "{}", now());
    let ended = ended.await.unwrap().unwrap();
    let open = inbox.accept("t", &second, &key, "{}", now());
    open.await.unwrap().unwrap();
    let reply = ("t", "{}", "hi");
    let queued = store.deliveries();
    let queued = queued.queue_and_end(ended, MessageEnd::Answered, reply, now());
    queued.await.unwrap();
    let id = SandboxId::random();
    let ledger = store.ledger();
    let named = ledger.name(&id, &key, BackendKind::Native, "{}", now());
    named.await.unwrap();
    store.processes().name(&process(&id)).await.unwrap();
    ask(store).await;
}

async fn counts(store: &Store, owner: RowOwner) -> [usize; 5] {
    let approvals = store.approvals();
    [
        store.inbox().open(owner).await.unwrap().len(),
        store.deliveries().due(owner).await.unwrap().len(),
        store.ledger().entries(owner).await.unwrap().len(),
        store.processes().all(owner).await.unwrap().len(),
        approvals.pending(owner, now()).await.unwrap().len(),
    ]
}

#[tokio::test]
async fn a_gateway_takes_up_its_own_work_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (one, two) = (opened_by(&path, "one").await, opened_by(&path, "two").await);
    leave_work(&one, "a").await;
    assert_eq!(counts(&two, RowOwner::ThisGateway).await, [0; 5]);
    leave_work(&two, "b").await;
    assert_eq!(counts(&one, RowOwner::ThisGateway).await, [1; 5]);
    assert_eq!(counts(&one, RowOwner::AnyGateway).await, [2; 5]);
}

/// Each records in its own audit record what was answered.
#[tokio::test]
async fn an_answer_is_recorded_by_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (one, two) = (opened_by(&path, "one").await, opened_by(&path, "two").await);
    ask(&one).await;
    let late = Timestamp::from_millis(i64::MAX);
    // Its clock may be wrong, and its operator may give people less time.
    two.approvals().expire(late).await.unwrap();
    let waits = one.approvals().pending(RowOwner::ThisGateway, now()).await;
    assert_eq!(waits.unwrap().len(), 1, "another gateway's clock ended it");
    one.approvals().expire(late).await.unwrap();
    let unrecorded = two.approvals().unrecorded(RowOwner::ThisGateway).await;
    assert_eq!(unrecorded.unwrap(), []);
    let unrecorded = one.approvals().unrecorded(RowOwner::ThisGateway).await;
    assert_eq!(unrecorded.unwrap().len(), 1);
}
