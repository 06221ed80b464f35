use std::path::Path;

use futures::future::ready;
use hermetic_chat::Chat;
use hermetic_store::Store;
use hermetic_types::{SystemClock, UserId};

use super::super::LeasedChat;
use super::*;
use crate::test_chat::NotingChat;

async fn rows(folder: &Path) -> LeaseRows {
    let opened = Store::open(&folder.join("s.db"), SystemClock::shared()).await;
    opened.unwrap().leases()
}

fn process(id: &str) -> GatewayProcess {
    GatewayProcess {
        id: id.parse().unwrap(),
        installation: "home".parse().unwrap(),
        host: "here".to_owned(),
        version: "1.2.3".to_owned(),
    }
}

async fn stand_by(rows: LeaseRows, id: &str) -> ServingLease {
    let admit = |_: LeaseState| ready(Ok::<(), ()>(()));
    let process = process(id);
    let stood = ServingLease::stand_by(rows, &process, SystemClock::shared(), admit);
    stood.await.unwrap()
}

#[tokio::test]
async fn who_stands_by_serves_within_moments_of_a_release() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (rows(folder.path()).await, rows(folder.path()).await);
    let first = stand_by(one, "one").await;
    assert!(first.clock().is_held());
    let mut second = tokio::spawn(stand_by(two, "two"));
    // More than one look.
    let waited = timeout(LOOK * 2, &mut second).await;
    assert!(waited.is_err(), "two serve at once");
    let released = Instant::now();
    let clock = first.clock();
    first.release().await;
    assert!(!clock.is_held());
    let second = second.await.unwrap();
    assert!(released.elapsed() < LOOK * 3, "{:?}", released.elapsed());
    assert_eq!(second.held().epoch(), 2);
}

#[tokio::test]
async fn who_was_replaced_hears_of_it_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let sleeper = stand_by(rows.clone(), "sleeper").await;
    let account = Arc::new(NotingChat::new("telegram"));
    let chat = LeasedChat::new(Arc::clone(&account) as Arc<dyn Chat>, sleeper.clock());
    let user = UserId::new("7").unwrap();
    chat.private_place(&user).await.unwrap();
    assert_eq!(account.noted().len(), 1);
    // What others do when it was not seen for long.
    rows.release(&sleeper.held()).await.unwrap();
    let other = rows.claim(SERVING, &process("other")).await.unwrap();
    assert_eq!(other.unwrap().epoch(), 2);
    assert_eq!(sleeper.lost().await, LeaseLoss::Taken);
    let refused = chat.private_place(&user).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("serves no longer")));
    assert_eq!(account.noted().len(), 1);
}

/// The clock counts from the last sign of life that was heard, also through a sleep of the whole process.
#[tokio::test]
async fn who_was_not_heard_for_long_may_not_act() {
    let renewed = |ago: Duration| {
        let at = Instant::now().checked_sub(ago).unwrap();
        LeaseClock(Arc::new(Mutex::new(Renewed { at, lost: false })))
    };
    assert!(renewed(CUT_AFTER - BEAT).is_held());
    let woken = renewed(CUT_AFTER);
    assert!(!woken.is_held());
    assert_eq!(woken.left(), Duration::ZERO);
}

/// Without an answer of the database, the keeper itself ends it, in time.
#[tokio::test]
async fn a_silent_holder_ends_before_others_may_begin() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let held = rows.claim(SERVING, &process("one")).await.unwrap().unwrap();
    let sent = Instant::now().checked_sub(CUT_AFTER).unwrap();
    let lease = ServingLease::keep(rows, held, sent, SystemClock::shared());
    let loss = timeout(BEAT, lease.lost()).await.unwrap();
    assert_eq!(loss, LeaseLoss::Silent);
    assert!(!lease.clock().is_held());
}

#[tokio::test]
async fn who_could_not_go_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let _serving = stand_by(rows.clone(), "one").await;
    let admit = |state: LeaseState| ready(Err::<(), _>(state.host));
    let clock = SystemClock::shared();
    let refused = ServingLease::stand_by(rows, &process("two"), clock, admit).await;
    assert!(matches!(refused, Err(StandByError::Refused(host)) if host == "here"));
}
