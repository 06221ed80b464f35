//! Signed messages in, replies out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use hermetic_chat::{Chat, ChatEvent, ChatReply, SendFailure};
use hermetic_testkit::clock::ManualClock;
use hermetic_types::{Secret, SharedClock, Timestamp};
use hermetic_webhook::{
    NONCE_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER, WebhookAdapter, WebhookConfig,
    WebhookConfigError,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lab::{Inbox, PATIENCE, message, next, next_message, outgoing, serve};

/// The time at which these tests happen.
const NOW: Timestamp = Timestamp::from_seconds(1_700_000_000);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Stands still at [`NOW`].
pub(crate) fn clock() -> SharedClock {
    ManualClock::at(NOW).shared()
}

pub(crate) fn secret() -> Secret {
    Secret::new("sixteen bytes or more")
}

fn webhook(change: impl FnOnce(&mut WebhookConfig)) -> Arc<WebhookAdapter> {
    let mut config = WebhookConfig {
        wait: Some(PATIENCE),
        ..WebhookConfig::new(secret(), clock())
    };
    change(&mut config);
    Arc::new(WebhookAdapter::new(config).unwrap())
}

fn routes(webhook: &Arc<WebhookAdapter>) -> axum::Router {
    let intake = Arc::clone(webhook).intake();
    intake.expect("it is called by HTTP").mounted()
}

fn hello(chat: &str) -> Value {
    json!({ "chat": chat, "user": "alice", "text": "hello" })
}

async fn post_signed(url: &str, signature: &SignedHeaders, body: &[u8]) -> (StatusCode, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(url)
        .header(TIMESTAMP_HEADER, signature.timestamp)
        .header(NONCE_HEADER, &signature.nonce)
        .header(SIGNATURE_HEADER, &signature.value)
        .body(body.to_vec());
    let response = timeout(PATIENCE * 2, request.send())
        .await
        .unwrap()
        .unwrap();
    let status = response.status();
    (status, response.json().await.unwrap_or(Value::Null))
}

pub(crate) async fn say(url: &str, nonce: &str, body: &Value) -> (StatusCode, Value) {
    let body = body.to_string();
    let signature = SignedHeaders::sign(&secret(), NOW.seconds(), nonce, body.as_bytes());
    post_signed(url, &signature, body.as_bytes()).await
}

fn reply(text: &str) -> ChatReply {
    ChatReply::text(outgoing(text))
}

/// Stores one message and answers it.
async fn answer(webhook: &WebhookAdapter, inbox: &mut Inbox<'_>, text: &str) {
    let heard = next_message(inbox).await;
    let mut reply = reply(text);
    reply.reply_to = Some(heard.message);
    webhook.send(&heard.place, &reply).await.unwrap();
}

#[tokio::test]
async fn the_reply_comes_in_the_response() {
    let webhook = webhook(|_| {});
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    let (said, ()) = tokio::join!(
        say(&url, "n1", &body),
        answer(&webhook, &mut inbox, "hi alice")
    );
    let (status, body) = said;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (body["text"].as_str(), body["chat"].as_str()),
        (Some("hi alice"), Some("ops"))
    );
    assert_eq!(body["reply_to"], "n1");
    serving.abort();
}

#[tokio::test]
async fn replies_at_once_find_their_own_requests() {
    let webhook = webhook(|_| {});
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let (one, two) = (hello("one"), hello("two"));
    let (first, second, ()) = tokio::join!(say(&url, "n1", &one), say(&url, "n2", &two), async {
        let mut places = Vec::new();
        for _ in 0..2 {
            places.push(next_message(&mut inbox).await.place);
        }
        for place in places.iter().rev() {
            webhook
                .send(place, &reply(&format!("for {}", place.chat)))
                .await
                .unwrap();
        }
    });
    assert_eq!(
        (first.1["text"].as_str(), second.1["text"].as_str()),
        (Some("for one"), Some("for two"))
    );
    serving.abort();
}

#[tokio::test]
async fn a_request_works_once() {
    let webhook = webhook(|config| config.wait = None);
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    // Not stored: the same request may be made again.
    let (first, ()) = tokio::join!(say(&url, "n1", &body), async {
        drop(next(&mut inbox).await);
    });
    assert_eq!(first.0, StatusCode::SERVICE_UNAVAILABLE);
    let (second, heard) = tokio::join!(say(&url, "n1", &body), next_message(&mut inbox));
    assert_eq!(
        (second.0, heard.update.as_str()),
        (StatusCode::ACCEPTED, "n1")
    );
    assert_eq!(say(&url, "n1", &body).await.0, StatusCode::CONFLICT);
    serving.abort();
}

#[tokio::test]
async fn who_hangs_up_before_it_is_stored_may_send_it_again() {
    let webhook = webhook(|config| config.wait = None);
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    // The store is slow: the event was handed over, and its receipt is not signed.
    let unsigned = tokio::select! {
        said = say(&url, "n1", &body) => panic!("{said:?}"),
        received = next(&mut inbox) => received,
    };
    // Nobody waits for the answer any more. The server may need a moment to see that.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let stored = loop {
        let (again, heard) = tokio::join!(say(&url, "n1", &body), async {
            timeout(Duration::from_millis(300), next_message(&mut inbox)).await
        });
        match again.0 {
            StatusCode::ACCEPTED => break heard.unwrap(),
            other => assert_eq!(other, StatusCode::CONFLICT),
        }
        assert!(tokio::time::Instant::now() < deadline, "it stays used");
    };
    assert_eq!(stored.update.as_str(), "n1");
    drop(unsigned);
    serving.abort();
}

#[tokio::test]
async fn forged_and_stale_requests_are_refused() {
    let webhook = webhook(|_| {});
    let (url, serving) = serve(routes(&webhook)).await;
    let (now, body) = (NOW.seconds(), hello("ops").to_string());
    let good = SignedHeaders::sign(&secret(), now, "n1", body.as_bytes());
    let stale = SignedHeaders::sign(&secret(), now - 400, "n2", body.as_bytes());
    let foreign = SignedHeaders::sign(
        &Secret::new("another secret of length"),
        now,
        "n3",
        body.as_bytes(),
    );
    for (signature, body) in [
        (&good, body.replace("hello", "rm -rf")),
        (&stale, body.clone()),
        (&foreign, body.clone()),
        (
            &SignedHeaders {
                nonce: "n4".to_owned(),
                ..good.clone()
            },
            body.clone(),
        ),
        (
            &SignedHeaders {
                value: "v1=".to_owned(),
                ..good.clone()
            },
            body.clone(),
        ),
    ] {
        let (status, answer) = post_signed(&url, signature, body.as_bytes()).await;
        assert_eq!((status, answer), (StatusCode::UNAUTHORIZED, Value::Null));
    }
    for (nonce, bad) in [
        ("n5", json!({ "chat": "ops", "user": "alice" })),
        (
            "n6",
            json!({ "chat": "ops", "user": "alice", "text": "x", "callback": "http://127.0.0.1:1" }),
        ),
        ("n7", json!({ "chat": "", "user": "alice", "text": "x" })),
        ("n8", json!([])),
    ] {
        assert_eq!(
            say(&url, nonce, &bad).await.0,
            StatusCode::BAD_REQUEST,
            "{bad}"
        );
    }
    let huge = json!({ "chat": "ops", "user": "alice", "text": "x".repeat(2 << 20) });
    assert_eq!(
        say(&url, "n9", &huge).await.0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    serving.abort();
}

#[tokio::test]
async fn a_clock_that_jumps_lets_nothing_in_twice() {
    let moved = ManualClock::at(NOW);
    let webhook = webhook(|config| {
        config.wait = None;
        config.clock = moved.shared();
    });
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    let ((status, _), heard) = tokio::join!(say(&url, "n1", &body), next_message(&mut inbox));
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(heard.received_at, NOW);

    // Far ahead, what is signed now is too old, and far behind too new.
    for wrong in [NOW.plus(DAY), NOW.minus(DAY)] {
        moved.set(wrong);
        assert_eq!(say(&url, "n2", &body).await.0, StatusCode::UNAUTHORIZED);
    }
    // Back again, the first one is still known, and a new one is taken.
    moved.set(NOW.minus(Duration::from_secs(60)));
    assert_eq!(say(&url, "n1", &body).await.0, StatusCode::CONFLICT);
    let ((status, _), heard) = tokio::join!(say(&url, "n2", &body), next_message(&mut inbox));
    assert_eq!(
        (status, heard.update.as_str()),
        (StatusCode::ACCEPTED, "n2")
    );
    serving.abort();
}

#[tokio::test]
async fn a_late_reply_goes_to_the_callback_signed() {
    let (posted, mut posts) = mpsc::channel::<(HeaderMap, Bytes)>(4);
    let callback = axum::Router::new().route(
        "/",
        post(move |headers: HeaderMap, body: Bytes| async move {
            posted.send((headers, body)).await.unwrap();
        }),
    );
    let (callback, receiving) = serve(callback).await;
    let webhook = webhook(|config| {
        config.wait = Some(Duration::ZERO);
        config.callback = Some(callback);
    });
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    let ((status, _), heard) = tokio::join!(say(&url, "n1", &body), next_message(&mut inbox));
    assert_eq!(status, StatusCode::ACCEPTED);
    webhook.send(&heard.place, &reply("late")).await.unwrap();
    let (headers, body) = timeout(PATIENCE, posts.recv()).await.unwrap().unwrap();
    let signature = SignedHeaders::read(&headers).unwrap();
    signature.check(&secret(), &body, NOW).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (body["text"].as_str(), body["id"].as_str()),
        (Some("late"), Some(signature.nonce.as_str()))
    );
    serving.abort();
    receiving.abort();
}

#[tokio::test]
async fn a_reply_nobody_waits_for_is_not_called_sent() {
    let webhook = webhook(|config| config.wait = None);
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body = hello("ops");
    let (_, heard) = tokio::join!(say(&url, "n1", &body), next_message(&mut inbox));
    let error = webhook
        .send(&heard.place, &reply("anybody?"))
        .await
        .unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::Refused { .. }),
        "{error:?}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_press_comes_in_too() {
    let webhook = webhook(|config| config.wait = None);
    let (url, serving) = serve(routes(&webhook)).await;
    let mut inbox = webhook.receive(CancellationToken::new());
    let body =
        json!({ "chat": "ops", "user": "alice", "press": { "message": "m1", "data": "y:1" } });
    let (_, received) = tokio::join!(say(&url, "n1", &body), async {
        let received = next(&mut inbox).await;
        received.receipt.stored();
        received.event
    });
    assert!(matches!(received, ChatEvent::Press(press) if press.data == "y:1"));
    serving.abort();
}

#[test]
fn a_short_secret_does_not_start() {
    let refused =
        WebhookAdapter::new(WebhookConfig::new(Secret::new("short"), clock())).unwrap_err();
    assert_eq!(refused, WebhookConfigError::ShortSecret { bytes: 5 });
    let mut config = WebhookConfig::new(secret(), clock());
    config.callback = Some("file:///etc/passwd".to_owned());
    assert_eq!(
        WebhookAdapter::new(config).unwrap_err(),
        WebhookConfigError::Callback
    );
}

#[tokio::test]
async fn a_request_that_nobody_takes_is_told_so() {
    let webhook = webhook(|config| config.storing = Duration::from_millis(10));
    let (url, serving) = serve(routes(&webhook)).await;
    let body = hello("ops");
    assert_eq!(
        say(&url, "n1", &body).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let mut inbox = webhook.receive(CancellationToken::new());
    let heard = next(&mut inbox).await;
    assert_eq!(message(heard.event).text, "hello");
    serving.abort();
}
