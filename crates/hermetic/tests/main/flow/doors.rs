//! Strangers, and people let in.

use hermetic_testkit::model::Reply;
use hermetic_types::Secret;
use hermetic_webhook::{NONCE_HEADER, SIGNATURE_HEADER, Signature, TIMESTAMP_HEADER};
use jiff::Timestamp;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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
async fn a_name_on_the_list_lets_nobody_in_and_the_start_says_so() {
    let test = "a_name_on_the_list_lets_nobody_in_and_the_start_says_so";
    let access = "TELEGRAM_ALLOWED_USERS=@alice,alice,7";
    let Some(lab) = Lab::start_with(test, [], "", access).await else {
        return;
    };
    for entry in ["entry=\"@alice\"", "entry=\"alice\""] {
        assert!(lab.said().contains(entry), "{}", lab.said());
    }
    assert!(lab.said().contains("listed by their number"));
    let names = [
        json!({"id": STRANGER, "username": "alice", "first_name": "7"}),
        json!({"id": STRANGER, "username": "7", "first_name": "@alice"}),
    ];
    for from in names {
        lab.telegram
            .says_with(STRANGER, json!({"text": "/sh id", "from": from}));
    }
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    assert_eq!(lab.sent_to(STRANGER), 0);
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
async fn on_the_host_what_needs_a_yes_is_refused_where_nobody_can_give_it() {
    let config =
        "gateway: {terminal_backend: local}\napprovals: {approvers: ['discord:7'], mode: manual}\n";
    let test = "on_the_host_what_needs_a_yes_is_refused_where_nobody_can_give_it";
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
        assert!(said.contains("nobody who may say yes"), "{said}");
        assert!(said.contains("Nothing was run"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_message_to_the_webhook_is_answered_in_the_response() {
    let (secret, access) = webhook();
    let test = "a_signed_message_to_the_webhook_is_answered_in_the_response";
    let Some(lab) = Lab::start_with(test, [], "", &access).await else {
        return;
    };
    let body = r#"{"chat": "ops", "user": "alice", "text": "/sh echo $((6 * 7))"}"#;
    let answer = post(&lab.said_address("webhook="), &secret, body).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("42"),
        "{answer}"
    );
    let forged = post(&lab.said_address("webhook="), &Secret::new("another"), body).await;
    assert!(forged.starts_with("HTTP/1.1 401"), "{forged}");
}

/// A secret, and what switches the webhook on.
pub(crate) fn webhook() -> (Secret, String) {
    const SECRET: &str = "a-secret-of-enough-bytes";
    let access = format!(
        "TELEGRAM_ALLOWED_USERS=7\nWEBHOOK_ENABLED=true\nWEBHOOK_PORT=0\nWEBHOOK_SECRET={SECRET}"
    );
    (Secret::new(SECRET), access)
}

pub(crate) async fn post(address: &str, secret: &Secret, body: &str) -> String {
    let now = Timestamp::now().as_second();
    let nonce = format!("n{}", Timestamp::now().as_nanosecond());
    let signature = Signature::sign(secret, now, nonce, body.as_bytes());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in [
        (TIMESTAMP_HEADER, signature.timestamp.to_string()),
        (NONCE_HEADER, signature.nonce),
        (SIGNATURE_HEADER, signature.value),
    ] {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("\r\n{body}"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_posts_to_us_where_a_webhook_is_configured() {
    const SECRET: &str = "hook-secret";
    let access = format!(
        "TELEGRAM_ALLOWED_USERS=7\nTELEGRAM_WEBHOOK_URL=https://bot.example/hooks/tg\n\
         TELEGRAM_WEBHOOK_PORT=0\nTELEGRAM_WEBHOOK_SECRET={SECRET}"
    );
    let script = [Reply::streams(&["heard"])];
    let test = "telegram_posts_to_us_where_a_webhook_is_configured";
    let Some(lab) = Lab::start_with(test, script, "", &access).await else {
        return;
    };
    let set = lab.telegram.wait_for("setWebhook", 1).await.remove(0);
    assert_eq!(set.params["url"], "https://bot.example/hooks/tg");
    assert_eq!(set.params["secret_token"], SECRET);
    let update = json!({"update_id": 5, "message": {
        "message_id": 1, "date": 1_700_000_000, "text": "hello",
        "chat": {"id": ALICE, "type": "private"},
        "from": {"id": ALICE, "is_bot": false, "first_name": "Alice"},
    }})
    .to_string();
    let address = lab.said_address("webhook=");
    let hand_in = async |path: &str, secret: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\nx-telegram-bot-api-secret-token: {secret}\r\n\
             content-length: {}\r\n\r\n{update}",
            update.len()
        );
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(hand_in("/hooks/tg", "guessed").await, "404");
    assert_eq!(hand_in("/", SECRET).await, "404");
    assert_eq!(hand_in("/hooks/tg", SECRET).await, "200");
    assert_eq!(lab.replies(ALICE, 1).await, ["heard"]);
    // Telegram repeats itself when it doubts.
    assert_eq!(hand_in("/hooks/tg", SECRET).await, "200");
    assert_eq!(lab.model.received().len(), 1);
}
