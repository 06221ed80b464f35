use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::{BackendKind, Timestamp};

use super::*;
use crate::test_lab::TestLab;

fn sharing(lab: &TestLab) -> SharedServing {
    let installation = "home".parse().unwrap();
    SharedServing::new(lab.store.shared_work(), installation, "here".to_owned())
}

/// The work of one that is gone: this message and nothing else.
fn left(message: &AcceptedMessage) -> AdoptedWork {
    let message = OpenMessage {
        row: message.row(),
        account: "telegram".to_owned(),
        conversation: message.conversation().clone(),
        payload: String::new(),
        attempts: 0,
        draft: None,
        received_at: Timestamp::from_millis(1),
    };
    AdoptedWork {
        messages: vec![message],
        ..AdoptedWork::default()
    }
}

#[tokio::test]
async fn a_message_is_handed_over_once_and_behind_those_that_came_before() {
    let lab = TestLab::new().await;
    let sharing = sharing(&lab);
    let first = lab.says(7, "first").await;
    let second = lab.says(7, "second").await.behind(&[&first]);
    assert_eq!(sharing.hand_over_once(&second, || ()), None, "it overtakes");
    assert_eq!(sharing.hand_over_once(&first, || ()), Some(()));
    assert_eq!(sharing.hand_over_once(&first, || ()), None, "twice");
    assert_eq!(sharing.hand_over_once(&second, || ()), Some(()));
}

#[tokio::test]
async fn what_has_ended_is_forgotten_and_what_came_during_the_look_is_not() {
    let lab = TestLab::new().await;
    let sharing = sharing(&lab);
    let (old, open) = (lab.says(7, "old").await, lab.says(8, "open").await);
    let (new, others) = (lab.says(9, "new").await, lab.says(10, "of another").await);
    for message in [&old, &open] {
        sharing.hand_over_once(message, || ()).unwrap();
    }
    let before = sharing.lock().handed_over.clone();
    sharing.hand_over_once(&new, || ()).unwrap();
    let unknown = sharing.unknown(&before, &[open.row(), others.row()]);
    assert_eq!(unknown, [others.row()]);
    let known = sharing.lock().handed_over.clone();
    assert_eq!(known, HashSet::from([open.row(), new.row()]));
}

#[tokio::test]
async fn nothing_begins_in_a_conversation_before_what_was_adopted_with_it_is_taken_up() {
    let lab = TestLab::new().await;
    let sharing = sharing(&lab);
    let (left_open, next) = (lab.says(7, "left").await, lab.says(7, "next").await);
    let other = lab.says(8, "other").await;
    sharing.lock().is_adopting = true;
    assert_eq!(sharing.hand_over_once(&other, || ()), None);
    sharing.lock().is_adopting = false;
    let work = left(&left_open);
    sharing.lock().hold_back(&work);
    assert_eq!(sharing.hand_over_once(&next, || ()), None);
    assert_eq!(sharing.hand_over_once(&other, || ()), Some(()));
    sharing.lock().let_go_on(&work);
    assert_eq!(sharing.hand_over_once(&next, || ()), Some(()));
}

/// It is let in a second time by the look, and neither counted nor recorded twice.
#[tokio::test]
async fn what_waits_for_the_look_is_known_to_have_been_let_in() {
    let lab = TestLab::new().await;
    let sharing = sharing(&lab);
    let first = lab.says(7, "first").await;
    let second = lab.says(7, "second").await.behind(&[&first]);
    assert_eq!(sharing.hand_over_once(&second, || ()), None);
    assert!(sharing.was_let_in(second.row()));
    assert!(!sharing.was_let_in(second.row()), "told once");
    assert_eq!(sharing.hand_over_once(&first, || ()), Some(()));
    assert!(
        !sharing.was_let_in(first.row()),
        "another gateway let it in"
    );
}

/// A turn that waits for a person, or was cut, goes on elsewhere; the next message of its conversation comes behind it.
#[tokio::test]
async fn nothing_overtakes_what_is_left_to_another_gateway() {
    let lab = TestLab::new().await;
    let sharing = sharing(&lab);
    let (waits, next) = (lab.says(7, "waits").await, lab.says(7, "next").await);
    let other = lab.says(8, "other").await;
    assert_eq!(sharing.hand_over_once(&waits, || ()), Some(()));
    sharing.leave_to_others(waits.conversation());
    assert_eq!(sharing.hand_over_once(&next, || ()), None);
    assert_eq!(sharing.hand_over_once(&other, || ()), Some(()));
}

/// A backend that does not answer keeps those back that have something there, and nobody else.
#[tokio::test]
async fn adopted_conversations_without_a_sandbox_do_not_wait_for_one() {
    let lab = TestLab::new().await;
    let (with, without) = (lab.says(7, "with").await, lab.says(8, "without").await);
    let mut work = left(&with);
    work.messages.extend(left(&without).messages);
    let entry = LedgerEntry {
        id: "0123456789ab".parse().unwrap(),
        conversation: with.conversation().clone(),
        backend: BackendKind::Ssh,
        state: LedgerState::Running,
        spec: String::new(),
        named_at: Timestamp::from_millis(1),
        touched_at: Timestamp::from_millis(1),
        failures: 0,
        last_failure: None,
        set_aside_at: None,
    };
    work.sandboxes.push(entry);
    let (first, second) = divided(work);
    let rows = |work: &AdoptedWork| -> Vec<_> { work.messages.iter().map(|one| one.row).collect() };
    assert_eq!(rows(&first), [with.row()]);
    assert_eq!(rows(&second), [without.row()]);
    assert_eq!((first.sandboxes.len(), second.sandboxes.len()), (1, 0));
}

/// Everything is looked for at its time, however many hints of our own come before.
#[tokio::test]
async fn hints_of_our_own_do_not_put_the_look_for_everything_off() {
    let lab = TestLab::new().await;
    let mut hints = lab.store.shared_work().hints().await;
    tokio::time::pause();
    let wake = Notify::new();
    let mut next = NextLook::new();
    assert!(next.is_for_all(), "the first look is for everything");
    for _ in 0..2 {
        for _ in 0..3 {
            wake.notify_one();
            next.wait(&mut hints, &wake).await;
            assert!(!next.is_for_all());
            tokio::time::advance(LOOK / 4).await;
        }
        next.wait(&mut hints, &wake).await;
        assert!(next.is_for_all());
    }
}
