use hermetic_types::Timestamp;

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
