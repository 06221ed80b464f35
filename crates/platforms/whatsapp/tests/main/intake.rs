//! Who is heard at the webhook, and when Meta is told that it may forget.

use std::sync::Arc;

use hermetic_chat::{Chat, ChatEvent, CheckError, ReceivedEvent};
use hermetic_testkit::whatsapp::{
    APP_SECRET, CHALLENGE, Failure, PHONE_NUMBER_ID, SECOND_NUMBER_ID, sign,
};
use hermetic_types::Secret;
use hermetic_whatsapp::WhatsAppCloud;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::{ALICE, Lab, config, message, next, next_message, serve};

/// A notification with these messages, as text.
fn notification(phone_number_id: &str, messages: &[Value]) -> String {
    let value = json!({
        "messaging_product": "whatsapp",
        "metadata": { "display_phone_number": "15550783881", "phone_number_id": phone_number_id },
        "messages": messages,
    });
    let change = json!({ "value": value, "field": "messages" });
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [change] }] })
        .to_string()
}

fn said(id: &str, seconds: u64, words: &str) -> Value {
    json!({
        "from_user_id": ALICE.id, "id": id, "timestamp": seconds.to_string(),
        "type": "text", "text": { "body": words },
    })
}

#[tokio::test]
async fn what_is_not_signed_with_our_secret_is_not_heard() {
    let lab = Lab::new().await;
    let body = notification(PHONE_NUMBER_ID, &[said("wamid.1", 1, "let me in")]);
    let good = sign(body.as_bytes());
    let other = sign(format!("{body} ").as_bytes());
    for signature in [
        None,
        Some(""),
        Some("sha256="),
        Some(other.as_str()),
        Some(&good[..20]),
    ] {
        let status = lab.server.posts_raw(body.as_bytes(), signature).await;
        assert_eq!(status, 403, "{signature:?}");
    }
    let upper = format!("SHA256={}", &good["sha256=".len()..]);
    assert_eq!(
        lab.server.posts_raw(body.as_bytes(), Some(&upper)).await,
        403
    );
    // What is signed and cannot be read is not asked for again.
    for body in [&b"not json"[..], b"", b"{", b"\xff\xfe"] {
        let signature = sign(body);
        assert_eq!(lab.server.posts_raw(body, Some(&signature)).await, 200);
    }
    let nested = "[".repeat(100_000);
    let signature = sign(nested.as_bytes());
    assert_eq!(
        lab.server
            .posts_raw(nested.as_bytes(), Some(&signature))
            .await,
        200
    );
}

#[tokio::test]
async fn the_challenge_is_answered_to_who_knows_the_verify_token() {
    let lab = Lab::new().await;
    let intake = Arc::clone(&lab.cloud).intake().unwrap();
    assert_eq!(intake.path, "whatsapp/webhook");
    let (url, serving) = serve(intake.router).await;
    let ask = async |query: &str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(format!("{url}?{query}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let good =
        format!("hub.mode=subscribe&hub.challenge={CHALLENGE}&hub.verify_token=test-verify-token");
    assert_eq!(ask(&good).await, (200, CHALLENGE.to_owned()));
    for bad in [
        "",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=test-verify-toke",
        "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=test-verify-token",
    ] {
        assert_eq!(ask(bad).await.0, 403, "{bad}");
    }
    serving.abort();

    let mut without = config(&lab.server.url());
    without.verify_token = None;
    let without = Arc::new(WhatsAppCloud::new(without).unwrap());
    let (url, serving) = serve(without.intake().unwrap().mounted()).await;
    let (status, _) = lab
        .server
        .subscribe(&format!("{url}whatsapp/webhook"))
        .await;
    assert_eq!(status, 403);
    serving.abort();
}

#[tokio::test]
async fn many_messages_in_one_call_each_have_a_receipt() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    // In no order, one of them malformed, one for somebody else's number.
    let messages = [
        said("wamid.3", 3, "three"),
        json!({ "id": 7 }),
        said("wamid.1", 1, "one"),
        said("wamid.2", 2, "two"),
    ];
    let body = notification(PHONE_NUMBER_ID, &messages);
    let signature = sign(body.as_bytes());
    let post = || lab.server.posts_raw(body.as_bytes(), Some(&signature));
    let (status, dropped) = tokio::join!(post(), async {
        assert_eq!(next_message(&mut inbox).await.text, "one");
        let dropped = next(&mut inbox).await;
        assert_eq!(next_message(&mut inbox).await.text, "three");
        message(dropped.event).text
    });
    assert_eq!(
        (status, dropped.as_str()),
        (503, "two"),
        "one of them is not stored"
    );
    // Meta repeats all of it, and only what was not stored is handed out again.
    let (status, again) = tokio::join!(post(), next_message(&mut inbox));
    assert_eq!((status, again.text.as_str()), (200, "two"));
    assert_eq!(post().await, 200);

    let foreign = notification("999", &[said("wamid.9", 9, "not ours")]);
    let signature = sign(foreign.as_bytes());
    assert_eq!(
        lab.server
            .posts_raw(foreign.as_bytes(), Some(&signature))
            .await,
        200
    );
    lab.server.says(ALICE, "next");
    assert_eq!(next_message(&mut inbox).await.text, "next");
}

#[tokio::test]
async fn a_token_that_meta_does_not_know_ends_the_stream_and_trouble_does_not() {
    let lab = Lab::new().await;
    let refuse = |status, code| Failure::Refuse {
        status,
        code,
        retry_after: None,
    };
    lab.server.fail_next("number", Failure::BadGateway);
    lab.server.fail_next("number", refuse(500, 2));
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "patience");
    assert_eq!(next_message(&mut inbox).await.text, "patience");
    assert_eq!(lab.server.tries("number"), 3);

    let mut wrong = config(&lab.server.url());
    wrong.access_token = Secret::new("EAAanother");
    let wrong = WhatsAppCloud::new(wrong).unwrap();
    let mut inbox = wrong.receive(tokio_util::sync::CancellationToken::new());
    let ended = futures::StreamExt::next(&mut inbox).await.unwrap();
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("access token"), "{error}");
    assert!(!error.contains("EAAanother") && !format!("{wrong:?}").contains(APP_SECRET));
    assert!(matches!(
        wrong.check().await,
        Err(CheckError::Unauthorized { .. })
    ));
}

#[tokio::test]
async fn a_check_names_the_number_and_what_it_lacks() {
    let lab = Lab::with(|config| config.version = "v20.0".parse().unwrap()).await;
    let check = lab.cloud.check().await.unwrap();
    assert_eq!(check.name.as_deref(), Some("+1 555-078-3881, Hermetic"));
    let problems: Vec<_> = check
        .shortcomings
        .iter()
        .map(|one| one.problem.as_str())
        .collect();
    assert_eq!(problems, ["this version of the Graph API has expired"]);
}

#[tokio::test]
async fn two_numbers_of_one_app_are_called_at_one_address_and_kept_apart() {
    let lab = Lab::new().await;
    let server = &lab.server;
    let mut second = config(&server.url());
    second.phone_number_id = SECOND_NUMBER_ID.to_owned();
    second.account = "whatsapp/work".parse().unwrap();
    let second = Arc::new(WhatsAppCloud::new(second).unwrap());
    lab.cloud.answers_for(&[Arc::clone(&second)]);
    assert!(Arc::clone(&second).intake().is_none());
    let message = |number: &str, id: &str| {
        let text = json!({ "body": "hello" });
        let message = json!({
            "from": ALICE.number, "from_user_id": ALICE.id, "id": id, "timestamp": "1",
            "type": "text", "text": text,
        });
        let value = json!({
            "metadata": { "phone_number_id": number, "display_phone_number": "15550783881" },
            "messages": [message],
        });
        json!({ "value": value, "field": "messages" })
    };
    let both = [
        message(PHONE_NUMBER_ID, "wamid.one"),
        message(SECOND_NUMBER_ID, "wamid.two"),
        message("306540352242922", "wamid.three"),
    ];
    server.posts(&json!({ "entry": [{ "changes": both }] }));
    let (mut first, mut other) = (lab.listen(), second.receive(CancellationToken::new()));
    let received = next(&mut first).await;
    assert_eq!(message_of(&received), ("whatsapp".to_owned(), "wamid.one"));
    received.receipt.stored();
    let received = next(&mut other).await;
    assert_eq!(
        message_of(&received),
        ("whatsapp/work".to_owned(), "wamid.two")
    );
    // One call: taken when both have stored theirs.
    assert_eq!(server.taken(), 0);
    received.receipt.stored();
}

fn message_of(received: &ReceivedEvent) -> (String, &str) {
    match &received.event {
        ChatEvent::Message(said) => (said.account.to_string(), said.message.as_str()),
        other => panic!("expected a message, got {other:?}"),
    }
}

#[tokio::test]
async fn what_was_signed_long_ago_is_not_heard_and_not_asked_for_again() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "today");
    assert_eq!(next_message(&mut inbox).await.text, "today");
    let old = notification(
        PHONE_NUMBER_ID,
        &[said("wamid.old", 1_700_000_000, "again")],
    );
    let signature = sign(old.as_bytes());
    let status = lab.server.posts_raw(old.as_bytes(), Some(&signature)).await;
    assert_eq!(status, 200);
    lab.server.says(ALICE, "and on");
    assert_eq!(next_message(&mut inbox).await.text, "and on");
}
