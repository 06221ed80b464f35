//! Strangers, and people let in.

use hermetic_testkit::model::Reply;
use serde_json::json;

use super::lab::{ALICE, Lab, STRANGER};

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_learns_nothing_where_there_is_an_allowlist() {
    let script = [Reply::streams(&["hello Alice"])];
    let test = "a_stranger_learns_nothing_where_there_is_an_allowlist";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    for words in ["hello", "/sh id", "/status", "/start"] {
        lab.telegram.says(STRANGER, words);
    }
    // Messages are taken in order, so the strangers' have been dealt with when Alice is answered.
    assert_eq!(lab.ask(ALICE, "hello").await, "hello Alice");
    assert_eq!(lab.sent_to(STRANGER), 0);
    assert_eq!(lab.model.received().len(), 1);
    assert!(
        lab.telegram
            .calls("sendChatAction")
            .iter()
            .all(|call| call.params["chat_id"] == json!(ALICE))
    );
    assert_eq!(lab.sandboxes(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_read_to_the_operator_lets_a_stranger_in() {
    let script = [Reply::streams(&["welcome"])];
    let test = "a_code_read_to_the_operator_lets_a_stranger_in";
    let Some(lab) = Lab::start_with(test, script, "", "").await else {
        return;
    };
    let offer = lab.ask(STRANGER, "/sh id").await;
    let code = offer.split_whitespace().last().unwrap().to_owned();
    assert_eq!(code.len(), 8, "{offer}");
    assert!(lab.run(&["pairing", "list"]).out.contains("waits"));
    let wrong = lab.run(&["pairing", "approve", "telegram", "AAAAAAAA"]);
    assert_eq!(wrong.code, 1, "{}", wrong.out);
    let done = lab.run(&["pairing", "approve", "telegram", &code]);
    assert_eq!(
        (done.code, done.out.contains("may write")),
        (0, true),
        "{}{}",
        done.out,
        done.err
    );
    assert_eq!(lab.ask(STRANGER, "hello").await, "welcome");
    assert_eq!(lab.run(&["pairing", "revoke", "telegram", "99"]).code, 0);
    // Out again: a new code instead of an answer, or silence.
    lab.telegram.says(STRANGER, "hello again");
    lab.telegram.wait_until_confirmed().await;
    assert_eq!(lab.model.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_update_is_answered_once_also_after_a_restart() {
    let script = [Reply::streams(&["once"]), Reply::streams(&["another"])];
    let test = "the_same_update_is_answered_once_also_after_a_restart";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    let update = lab.telegram.says(ALICE, "hello");
    assert_eq!(lab.replies(ALICE, 1).await, ["once"]);
    lab.terminate();
    lab.telegram.update(json!({"update_id": update, "message": {
        "message_id": 1, "date": 1_700_000_000, "text": "hello",
        "chat": {"id": ALICE, "type": "private"},
        "from": {"id": ALICE, "is_bot": false, "first_name": "Alice"},
    }}));
    lab.restart();
    assert_eq!(lab.ask(ALICE, "and now?").await, "another");
    assert_eq!(lab.sent_to(ALICE), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_host_what_needs_a_yes_is_refused() {
    let config = "gateway: {terminal_backend: local}\n";
    let test = "on_the_host_what_needs_a_yes_is_refused";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(lab) = Lab::start_with(test, [], config, access).await else {
        return;
    };
    assert!(lab.ask(ALICE, "/sh echo $((6 * 7))").await.contains("42"));
    // Harmless if it ran after all: nobody listens, and there is no such folder.
    for command in [
        "/sh curl http://127.0.0.1:1/x | sh",
        "/py import shutil; shutil.rmtree('/nonexistent/hermetic-test')",
    ] {
        let said = lab.ask(ALICE, command).await;
        assert!(said.contains("Nothing was run"), "{said}");
    }
}
