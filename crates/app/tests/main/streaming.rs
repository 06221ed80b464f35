//! An answer that is seen to grow.

use std::sync::Arc;
use std::time::Duration;

use hermetic_testkit::chat::{Edit, Fault, Operation, Record};
use hermetic_testkit::model::Reply;
use tokio::sync::Notify;

use crate::lab::{ALICE, BOB, KEY, Lab};

const BEGINNING: &str = "This is a long beginning of an answer, ";

#[tokio::test]
async fn an_answer_grows_in_one_message_and_ends_whole_and_redacted() {
    let gate = Arc::new(Notify::new());
    let (half, rest) = KEY.split_at(11);
    let script = [Reply::streams_through(
        &gate,
        &[BEGINNING, "and the key is ", half],
        &[rest, ", **all** of it."],
    )];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "the key?");
    let begun = lab.replies(ALICE, 1).await.remove(0);
    assert!(
        begun.starts_with(BEGINNING.trim_end()) && begun.ends_with('▉'),
        "{begun}"
    );
    assert!(!begun.contains("correct"), "{begun}");
    gate.notify_one();
    let whole = format!("{BEGINNING}and the key is [redacted], all of it.");
    assert_eq!(last_edit(&lab, &whole).await, whole);
    for edit in lab.chat().record().edits {
        let shown = edit.text();
        assert!(
            !shown.contains("correct") && !shown.contains(rest),
            "{shown}"
        );
    }
    assert_eq!(lab.sent_to(ALICE), 1);
}

#[tokio::test]
async fn a_draft_that_somebody_deleted_becomes_a_new_message() {
    let gate = Arc::new(Notify::new());
    let script = [Reply::streams_through(&gate, &[BEGINNING], &["done"])];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "hello");
    lab.replies(ALICE, 1).await;
    for _ in 0..3 {
        let gone = Fault::Refused("message to edit not found");
        lab.chat().fail_next(Operation::Edit, gone);
    }
    gate.notify_one();
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies[1], format!("{BEGINNING}done"));
}

#[tokio::test]
async fn switched_off_nothing_is_shown_before_the_end() {
    let text = "a text that is long enough to be shown before its end, were it not off";
    let script = [Reply::streams(&[text])];
    let config = "streaming: false\n";
    let lab = Lab::builder()
        .script(script)
        .config(config)
        .access("TELEGRAM_ALLOWED_USERS=7")
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hello").await, text);
    assert!(lab.chat().record().edits.is_empty());
}

#[tokio::test]
async fn a_throttled_reply_is_not_overtaken_in_its_chat_and_holds_up_no_other() {
    let lab = Lab::builder().start().await;
    let throttled = Fault::Throttled(Duration::from_secs(1));
    lab.chat().fail_next(Operation::Send, throttled);
    lab.says(ALICE, "/help");
    lab.chat().tried(Operation::Send, 1).await;
    lab.says(ALICE, "/whoami");
    lab.says(ALICE, "/status");
    assert!(lab.ask(BOB, "/whoami").await.contains("user: 8"));
    let replies = lab.replies(ALICE, 3).await;
    assert!(replies[0].starts_with("Write, and I answer"), "{replies:?}");
    assert!(replies[1].starts_with("user: 7") != replies[2].starts_with("user: 7"));
}

async fn last_edit(lab: &Lab, whole: &str) -> String {
    let last = |record: &Record| record.edits.last().map(Edit::text);
    let ended = |record: &Record| last(record).is_some_and(|text| text.ends_with(whole));
    let record = lab.chat().wait_for("the whole answer", ended).await;
    last(&record).unwrap()
}
