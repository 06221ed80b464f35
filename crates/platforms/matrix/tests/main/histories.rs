//! What was said while nobody listened, and before anybody did.

use hermetic_chat::Chat;
use hermetic_testkit::matrix::ProxyFault;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, next, next_message};

#[tokio::test]
async fn what_was_said_before_the_first_start_is_not_answered() {
    let Some(lab) = Lab::new("what_was_said_before_the_first_start").await else {
        return;
    };
    lab.alice.says(&lab.room, "long ago").await;
    let mut inbox = lab.listen().await;
    lab.alice.says(&lab.room, "now").await;
    assert_eq!(next_message(&mut inbox).await.text, "now");
}

#[tokio::test]
async fn a_long_absence_is_read_from_the_history_once_and_in_order() {
    let Some(lab) = Lab::new("a_long_absence_is_read").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    lab.alice.says(&lab.room, "before").await;
    assert_eq!(next_message(&mut inbox).await.text, "before");
    lab.settle(&mut inbox).await;
    drop(inbox);
    // More than one sync and a dozen pages hold.
    lab.proxy.spoil(ProxyFault::ShortPages(3));
    let said: Vec<_> = (0..75)
        .map(|number| format!("while away {number}"))
        .collect();
    for text in &said {
        lab.alice.says(&lab.room, text).await;
    }
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    for text in &said {
        assert_eq!(next_message(&mut inbox).await.text, *text);
    }
    lab.alice.says(&lab.room, "after").await;
    assert_eq!(next_message(&mut inbox).await.text, "after");
}

#[tokio::test]
async fn a_crash_before_the_receipt_brings_it_again_under_the_same_name() {
    let Some(lab) = Lab::new("a_crash_before_the_receipt").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    lab.alice.says(&lab.room, "one").await;
    let one = next_message(&mut inbox).await;
    lab.alice.says(&lab.room, "two").await;
    let two = next(&mut inbox).await;
    // The process ends with "two" in its hands and the position of before "one".
    drop(inbox);
    drop(two.receipt);
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let mut heard = Vec::new();
    while heard.last().is_none_or(|(text, _)| text != "two") {
        let message = next_message(&mut inbox).await;
        heard.push((message.text, message.update));
    }
    let update = crate::lab::message(two.event).update;
    assert_eq!(heard.pop(), Some(("two".to_owned(), update)));
    // What was stored may come again, under its own name: the ledger knows that.
    assert!(
        heard.iter().all(|(_, update)| *update == one.update),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_position_that_the_homeserver_forgot_is_begun_anew() {
    let Some(lab) = Lab::new("a_position_that_the_homeserver_forgot").await else {
        return;
    };
    let saving = hermetic_chat::SaveDurability::OnDisk;
    lab.state
        .save("since", "s999_of_another_server", saving)
        .await
        .unwrap();
    lab.proxy.spoil(ProxyFault::BreakSyncs(2));
    let mut inbox = lab.matrix.receive(CancellationToken::new());
    let asked = lab.proxy.sync_count();
    tokio::select! {
        _ = next(&mut inbox) => panic!("nothing was said"),
        () = lab.proxy.syncs(asked + 5) => {}
    }
    lab.alice.says(&lab.room, "hello").await;
    assert_eq!(next_message(&mut inbox).await.text, "hello");
}
