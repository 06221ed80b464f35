//! Replies that the platform did not take at once.

use std::time::Duration;

use hermetic_chat::SendKey;
use hermetic_store::{DeliveryRow, RowOwner};
use hermetic_testkit::chat::{Fault, Operation};
use hermetic_testkit::model::Reply;

use crate::lab::{ALICE, Lab};

/// Longer than the first pause before another try.
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_reply_that_may_have_arrived_is_sent_again_and_marked() {
    let script = [Reply::streams(&["the answer"])];
    let lab = Lab::builder().script(script).start().await;
    let doubt = Fault::UncertainAndArrived;
    lab.chat().fail_next(Operation::Send, doubt);
    lab.says(ALICE, "hello");
    lab.chat().tried(Operation::Send, 1).await;
    lab.pass(MINUTE).await;
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies[0], "the answer");
    assert!(replies[1].contains("Possible duplicate"), "{replies:?}");
}

#[tokio::test]
async fn a_reply_that_certainly_did_not_arrive_is_sent_again_as_it_is() {
    let script = [Reply::streams(&["the answer"])];
    let lab = Lab::builder().script(script).start().await;
    lab.chat().fail_next(Operation::Send, Fault::NotSent);
    lab.says(ALICE, "hello");
    lab.chat().tried(Operation::Send, 1).await;
    lab.pass(MINUTE).await;
    assert_eq!(lab.replies(ALICE, 1).await, ["the answer"]);
}

#[tokio::test]
async fn a_message_is_acknowledged_once_it_is_stored_and_not_when_it_is_answered() {
    let script = [Reply::streams(&["the answer"])];
    let lab = Lab::builder().script(script).start().await;
    lab.chat().fail_next(Operation::Send, Fault::Hang);
    let update = lab.chat().says(ALICE, "hello");
    lab.chat().tried(Operation::Send, 1).await;
    assert!(lab.chat().is_signed(update));
    assert_eq!(lab.sent_to(ALICE), 0);
    lab.chat().release();
    assert_eq!(lab.replies(ALICE, 1).await, ["the answer"]);
}

#[tokio::test]
async fn a_reply_that_was_lost_after_all_is_no_sent_one_in_the_ledger() {
    let script = [Reply::streams(&["here it is"])];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "where is it?").await;
    let deliveries = lab.store().await.deliveries();
    let due = || async { deliveries.due(RowOwner::AnyGateway).await.unwrap() };
    while !due().await.is_empty() {
        tokio::task::yield_now().await;
    }
    lab.chat().loses(SendKey::new(1, 0));
    // One that nobody sent.
    lab.chat().loses(SendKey::new(1000, 0));
    lab.chat().all_signed().await;
    let lost_again = deliveries.lost(DeliveryRow(1), "telegram", "?").await;
    assert!(!lost_again.unwrap(), "it still counts as sent");
}
