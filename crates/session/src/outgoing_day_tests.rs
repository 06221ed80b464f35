use std::sync::Arc;
use std::time::Duration;

use hermetic_store::Store;
use hermetic_testkit::clock::ManualClock;
use hermetic_types::SystemClock;

use super::*;

async fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path, SystemClock::shared()).await.unwrap();
    (folder, store)
}

fn limits(person: u64, conversation: u64, all: u64) -> OutgoingLimits {
    OutgoingLimits {
        person: Some(person),
        conversation: Some(conversation),
        all: Some(all),
    }
}

fn key(name: &str) -> ConversationKey {
    ConversationKey::new(name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_at_once_pass_no_bound() {
    let (_folder, store) = store().await;
    let day = OutgoingDay::load(
        store.documents(),
        limits(1 << 40, 1 << 40, 100_000),
        SystemClock::shared(),
    );
    let day = Arc::new(day.await.unwrap());
    let sending = (0..50).map(|number| {
        let day = Arc::clone(&day);
        tokio::task::spawn_blocking(move || {
            let own = key(&format!("c{number}"));
            (0..1000).filter(|_| day.spend(&own, 77).is_ok()).count() as u64
        })
    });
    let mut sent = 0;
    for task in sending {
        sent += 77 * task.await.unwrap();
    }
    assert_eq!(sent, 100_000 / 77 * 77);
    assert_eq!(day.state().sums.all, sent);
}

#[tokio::test]
async fn each_bound_is_told_apart_and_what_is_refused_is_not_counted() {
    let (_folder, store) = store().await;
    let day = OutgoingDay::load(
        store.documents(),
        limits(150, 100, 1000),
        SystemClock::shared(),
    );
    let day = day.await.unwrap();
    day.note_speaker(&key("a"), "telegram:7");
    day.note_speaker(&key("b"), "telegram:7");
    day.note_speaker(&key("c"), "telegram:8");
    let scope = |name: &str, bytes| day.spend(&key(name), bytes).map_err(|spent| spent.scope);
    assert_eq!(scope("a", 101), Err(BudgetScope::Conversation));
    assert_eq!(scope("a", 100), Ok(()));
    assert_eq!(
        day.check(&key("a")).unwrap_err().scope,
        BudgetScope::Conversation
    );
    assert_eq!(scope("b", 51), Err(BudgetScope::Person));
    assert_eq!(scope("b", 50), Ok(()));
    assert_eq!(day.check(&key("b")).unwrap_err().scope, BudgetScope::Person);
    assert_eq!(scope("c", 100), Ok(()), "somebody else has their own");
}

#[tokio::test]
async fn a_day_is_kept_over_a_restart_and_ends_at_midnight() {
    let (_folder, store) = store().await;
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let bounds = limits(100, 100, 100);
    let open = || OutgoingDay::load(store.documents(), bounds, clock.shared());
    let day = open().await.unwrap();
    day.note_speaker(&key("a"), "telegram:7");
    day.spend(&key("a"), 90).unwrap();
    day.save().await;
    let day = open().await.unwrap();
    assert!(day.spend(&key("a"), 11).is_err());
    assert!(day.spend(&key("a"), 10).is_ok());
    clock.advance(Duration::from_secs(25 * 3600));
    assert!(day.spend(&key("a"), 100).is_ok());
    assert_eq!(day.state().sums.persons["telegram:7"], 100, "still theirs");
}

#[tokio::test]
async fn what_works_beside_a_conversation_has_no_bytes_of_its_own() {
    let (_folder, store) = store().await;
    let bounds = limits(150, 100, 1000);
    let day = OutgoingDay::load(store.documents(), bounds, SystemClock::shared());
    let day = day.await.unwrap();
    day.note_speaker(&key("a"), "telegram:7");
    day.begin_beside(&key("a"), &key("work"));
    day.spend(&key("work"), 90).unwrap();
    assert_eq!(
        day.spend(&key("a"), 11).unwrap_err().scope,
        BudgetScope::Conversation
    );
    day.end_beside(&key("work"));
    day.begin_beside(&key("a"), &key("more work"));
    assert!(day.spend(&key("more work"), 11).is_err());
    assert_eq!(day.state().sums.persons["telegram:7"], 90);
}

#[tokio::test]
async fn a_bound_is_lifted_once_and_for_a_day() {
    let (_folder, store) = store().await;
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let bounds = OutgoingLimits {
        person: Some(100),
        ..OutgoingLimits::default()
    };
    let open = || OutgoingDay::load(store.documents(), bounds, clock.shared());
    let day = open().await.unwrap();
    let ada = OutgoingScope::Person("telegram:7".to_owned());
    assert_eq!(day.lift(&OutgoingScope::All), OutgoingLift::NotBounded);
    assert_eq!(day.lift(&ada), OutgoingLift::Unknown);
    day.note_speaker(&key("a"), "telegram:7");
    day.spend(&key("a"), 100).unwrap();
    assert!(day.spend(&key("a"), 1).is_err());
    assert_eq!(day.lift(&ada), OutgoingLift::Lifted);
    day.spend(&key("a"), 50).unwrap();
    day.save().await;
    let day = open().await.unwrap();
    assert_eq!(day.lift(&ada), OutgoingLift::Already);
    let sum = OutgoingSum {
        bytes: 150,
        limit: 200,
    };
    assert_eq!(day.sum(&ada), Some(sum));
    assert!(day.spend(&key("a"), 51).is_err());
    clock.advance(Duration::from_secs(25 * 3600));
    assert!(
        day.spend(&key("a"), 101).is_err(),
        "it was lifted for a day"
    );
    assert_eq!(day.sum(&OutgoingScope::All), None);
}
