//! An answer that is seen to grow.

use std::sync::Arc;

use hermetic_testkit::model::Reply;
use hermetic_testkit::telegram::Failure;
use tokio::sync::Notify;

use super::lab::{ALICE, BOB, KEY, Lab, text};

const BEGINNING: &str = "This is a long beginning of an answer, ";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_grows_in_one_message_and_ends_whole_and_redacted() {
    let gate = Arc::new(Notify::new());
    let (half, rest) = KEY.split_at(11);
    let script = [Reply::streams_through(
        &gate,
        &[BEGINNING, "and the key is ", half],
        &[rest, ", **all** of it."],
    )];
    let test = "an_answer_grows_in_one_message_and_ends_whole_and_redacted";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "the key?");
    let begun = lab.replies(ALICE, 1).await.remove(0);
    assert!(
        begun.starts_with(BEGINNING.trim_end()) && begun.ends_with('▉'),
        "{begun}"
    );
    assert!(!begun.contains("correct"), "{begun}");
    gate.notify_one();
    let whole = format!("{BEGINNING}and the key is [redacted], all of it.");
    assert_eq!(last_edit(&lab, &whole).await, whole);
    for edit in lab.telegram.calls("editMessageText") {
        let shown = text(&edit.params);
        assert!(
            !shown.contains("correct") && !shown.contains(rest),
            "{shown}"
        );
    }
    assert_eq!(lab.sent_to(ALICE), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_an_answer_grows_it_goes_on_in_the_same_message() {
    let gate = Arc::new(Notify::new());
    let script = [
        Reply::streams_through(&gate, &[BEGINNING], &["never said"]),
        Reply::streams(&["the answer after all"]),
    ];
    let test = "killed_while_an_answer_grows_it_goes_on_in_the_same_message";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "hello");
    lab.replies(ALICE, 1).await;
    // The id is noted after Telegram gave it; an edit proves that it was.
    lab.kill();
    lab.restart();
    lab.model_asked(2).await;
    let answered = tokio::select! {
        edit = last_edit(&lab, "the answer after all") => edit,
        // Killed before the id was noted: then the answer is a message of its own.
        mut replies = lab.replies(ALICE, 2) => replies.remove(1),
    };
    assert!(answered.ends_with("the answer after all"), "{answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_somebody_deleted_becomes_a_new_message() {
    let gate = Arc::new(Notify::new());
    let script = [Reply::streams_through(&gate, &[BEGINNING], &["done"])];
    let test = "a_draft_that_somebody_deleted_becomes_a_new_message";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "hello");
    lab.replies(ALICE, 1).await;
    for _ in 0..3 {
        let gone = Failure::Refuse {
            code: 400,
            description: "Bad Request: message to edit not found",
            retry_after: None,
        };
        lab.telegram.fail_next("editMessageText", gone);
    }
    gate.notify_one();
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies[1], format!("{BEGINNING}done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_nothing_is_shown_before_the_end() {
    let text = "a text that is long enough to be shown before its end, were it not off";
    let script = [Reply::streams(&[text])];
    let test = "switched_off_nothing_is_shown_before_the_end";
    let config = "streaming: false\n";
    let Some(lab) = Lab::start_with(test, script, config, "TELEGRAM_ALLOWED_USERS=7").await else {
        return;
    };
    assert_eq!(lab.ask(ALICE, "hello").await, text);
    assert!(lab.telegram.calls("editMessageText").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_reply_is_not_overtaken_in_its_chat_and_holds_up_no_other() {
    let test = "a_throttled_reply_is_not_overtaken_in_its_chat_and_holds_up_no_other";
    let Some(lab) = Lab::start(test, []).await else {
        return;
    };
    let throttled = Failure::Refuse {
        code: 429,
        description: "Too Many Requests: retry after 1",
        retry_after: Some(1),
    };
    lab.telegram.fail_next("sendMessage", throttled);
    lab.telegram.says(ALICE, "/help");
    lab.telegram.wait_for_tries("sendMessage", 1).await;
    lab.telegram.says(ALICE, "/whoami");
    lab.telegram.says(ALICE, "/status");
    assert!(lab.ask(BOB, "/whoami").await.contains("user: 8"));
    let replies = lab.replies(ALICE, 3).await;
    assert!(replies[0].starts_with("Write, and I answer"), "{replies:?}");
    assert!(replies[1].starts_with("user: 7") != replies[2].starts_with("user: 7"));
}

async fn last_edit(lab: &Lab, whole: &str) -> String {
    let mut count = 1;
    loop {
        let edits = lab.telegram.wait_for("editMessageText", count).await;
        let shown = text(&edits.last().unwrap().params);
        if shown.ends_with(whole) {
            return shown;
        }
        count = edits.len() + 1;
    }
}
