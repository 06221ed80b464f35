//! Strangers, and people let in.

use hermetic_testkit::model::Reply;
use hermetic_types::Secret;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::lab::{ALICE, Lab, STRANGER, WireLab, post, webhook};

#[tokio::test]
async fn a_stranger_learns_nothing_where_there_is_an_allowlist() {
    let script = [Reply::streams(&["hello Alice"])];
    let lab = WireLab::start(Lab::builder().script(script)).await;
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
    assert_eq!(lab.sandboxes().await, [""; 0]);
}

#[tokio::test]
async fn the_same_update_is_answered_once_also_after_a_restart() {
    let script = [Reply::streams(&["once"]), Reply::streams(&["another"])];
    let mut lab = WireLab::start(Lab::builder().script(script)).await;
    let update = lab.telegram.says(ALICE, "hello");
    assert_eq!(lab.replies(ALICE, 1).await, ["once"]);
    lab.stop().await;
    lab.telegram.update(json!({"update_id": update, "message": {
        "message_id": 1, "date": 1_700_000_000, "text": "hello",
        "chat": {"id": ALICE, "type": "private"},
        "from": {"id": ALICE, "is_bot": false, "first_name": "Alice"},
    }}));
    lab.start().await;
    assert_eq!(lab.ask(ALICE, "and now?").await, "another");
    assert_eq!(lab.sent_to(ALICE), 2);
}

#[tokio::test]
async fn on_the_host_what_needs_a_yes_is_refused_where_nobody_can_give_it() {
    let config =
        "gateway: {terminal_backend: local}\napprovals: {approvers: ['discord:7'], mode: manual}\n";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let builder = Lab::builder().configured_backends();
    let lab = WireLab::start(builder.config(config).access(access)).await;
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

#[tokio::test]
async fn a_signed_message_to_the_webhook_is_answered_in_the_response() {
    let (secret, access) = webhook();
    let lab = Lab::builder()
        .configured_chats()
        .access(&access)
        .start()
        .await;
    let body = r#"{"chat": "ops", "user": "alice", "text": "/sh echo $((6 * 7))"}"#;
    let answer = post(lab.intake(), lab.clock(), &secret, body).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("42"),
        "{answer}"
    );
    let forged = post(lab.intake(), lab.clock(), &Secret::new("another"), body).await;
    assert!(forged.starts_with("HTTP/1.1 401"), "{forged}");
}

#[tokio::test]
async fn telegram_posts_to_us_where_a_webhook_is_configured() {
    const SECRET: &str = "hook-secret";
    let access = format!(
        "TELEGRAM_ALLOWED_USERS=7\nTELEGRAM_WEBHOOK_URL=https://bot.example/hooks/tg\n\
         TELEGRAM_WEBHOOK_PORT=0\nTELEGRAM_WEBHOOK_SECRET={SECRET}"
    );
    let script = [Reply::streams(&["heard"])];
    let lab = WireLab::start(Lab::builder().script(script).access(&access)).await;
    let set = lab.telegram.wait_for("setWebhook", 1).await.remove(0);
    assert_eq!(set.params["url"], "https://bot.example/hooks/tg");
    assert_eq!(set.params["secret_token"], SECRET);
    let update = json!({"update_id": 5, "message": {
        "message_id": 1, "date": 1_700_000_000, "text": "hello",
        "chat": {"id": ALICE, "type": "private"},
        "from": {"id": ALICE, "is_bot": false, "first_name": "Alice"},
    }})
    .to_string();
    let address = lab.intake();
    let hand_in = async |path: &str, secret: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\nx-telegram-bot-api-secret-token: {secret}\r\n\
             content-length: {}\r\n\r\n{update}",
            update.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
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
    assert_eq!(hand_in("/hooks/tg/", SECRET).await, "200");
    assert_eq!(lab.model.received().len(), 1);
}
