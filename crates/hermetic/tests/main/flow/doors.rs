//! Strangers, and people let in.

use hermetic_testkit::model::Reply;
use hermetic_types::{Clock as _, Secret, SystemClock};
use hermetic_webhook::{NONCE_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::lab::{ALICE, Lab, STRANGER};

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

/// A secret, and what switches the webhook on.
pub(crate) fn webhook() -> (Secret, String) {
    const SECRET: &str = "a-secret-of-enough-bytes";
    let access = format!(
        "TELEGRAM_ALLOWED_USERS=7\nWEBHOOK_ENABLED=true\nWEBHOOK_PORT=0\nWEBHOOK_SECRET={SECRET}"
    );
    (Secret::new(SECRET), access)
}

pub(crate) async fn post(address: &str, secret: &Secret, body: &str) -> String {
    let nonce = format!("n{}", uuid::Uuid::new_v4().simple());
    let now = SystemClock.now().seconds();
    let signature = SignedHeaders::sign(secret, now, nonce, body.as_bytes());
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
