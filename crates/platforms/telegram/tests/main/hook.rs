//! Updates by webhook.

use std::sync::Arc;

use hermetic_chat::Chat;
use hermetic_telegram::{TelegramAdapter, TelegramConfigError, TelegramIntake};
use hermetic_types::Secret;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, config, message, next, next_message, serve};

const SECRET: &str = "a-secret_token";

async fn lab() -> Lab {
    Lab::with(|config| {
        config.intake = TelegramIntake::Webhook {
            url: "https://bot.invalid/telegram".to_owned(),
            secret: Secret::new(SECRET),
        };
    })
    .await
}

/// As they are mounted, without the path.
fn routes(lab: &Lab) -> axum::Router {
    let intake = Arc::clone(&lab.telegram).intake();
    let intake = intake.expect("Telegram posts to it");
    assert_eq!(intake.path, "telegram");
    intake.router
}

fn update(id: i64, text: &str) -> Value {
    json!({ "update_id": id, "message": {
        "message_id": id, "chat": { "id": 7, "type": "private" }, "from": { "id": 7 }, "text": text,
    }})
}

async fn post(url: &str, secret: Option<&str>, body: String) -> StatusCode {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .body(body);
    if let Some(secret) = secret {
        request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
    }
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn an_update_is_taken_when_it_is_stored() {
    let lab = lab().await;
    let (url, serving) = serve(routes(&lab)).await;
    let mut inbox = lab.telegram.receive(CancellationToken::new());
    let (first, ()) = tokio::join!(
        async {
            // The stream sets the webhook and learns our name before it listens.
            lab.server.wait_for("setWebhook", 1).await;
            post(&url, Some(SECRET), update(1, "hello").to_string()).await
        },
        async {
            let dropped = next(&mut inbox).await;
            assert_eq!(message(dropped.event).text, "hello");
            drop(dropped.receipt);
        }
    );
    assert_eq!(first, StatusCode::SERVICE_UNAVAILABLE);
    let (second, heard) = tokio::join!(
        post(&url, Some(SECRET), update(1, "hello").to_string()),
        next_message(&mut inbox)
    );
    assert_eq!((second, heard.text.as_str()), (StatusCode::OK, "hello"));
    assert_eq!(
        post(&url, Some(SECRET), update(1, "hello").to_string()).await,
        StatusCode::OK
    );
    let (third, heard) = tokio::join!(
        post(&url, Some(SECRET), update(2, "on").to_string()),
        next_message(&mut inbox)
    );
    assert_eq!((third, heard.text.as_str()), (StatusCode::OK, "on"));

    let params = &lab.server.calls("setWebhook")[0].params;
    assert_eq!(
        (params["url"].as_str(), params["secret_token"].as_str()),
        (Some("https://bot.invalid/telegram"), Some(SECRET))
    );
    serving.abort();
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_not_heard() {
    let lab = lab().await;
    let (url, serving) = serve(routes(&lab)).await;
    let body = update(1, "let me in").to_string();
    for secret in [
        None,
        Some(""),
        Some("a-secret_toke"),
        Some("a-secret_token2"),
        Some("A-secret_token"),
    ] {
        assert_eq!(
            post(&url, secret, body.clone()).await,
            StatusCode::NOT_FOUND,
            "{secret:?}"
        );
    }
    assert_eq!(
        post(&url, Some(SECRET), "x".repeat(2 << 20)).await,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(
        post(&url, Some(SECRET), "not json".to_owned()).await,
        StatusCode::OK
    );
    serving.abort();
}

#[tokio::test]
async fn without_a_webhook_configured_nothing_is_taken() {
    let polling = Lab::new().await;
    assert!(Arc::clone(&polling.telegram).intake().is_none());
}

#[test]
fn a_webhook_without_a_secret_does_not_start() {
    for secret in ["", "with space", "ü"] {
        let mut config = config("http://127.0.0.1:1");
        config.intake = TelegramIntake::Webhook {
            url: String::new(),
            secret: Secret::new(secret),
        };
        let refused = TelegramAdapter::new(config).map(Arc::new).unwrap_err();
        assert_eq!(refused, TelegramConfigError::WebhookSecret);
    }
    let mut config = config("http://127.0.0.1:1");
    config.token = Secret::new("1:a/../../x");
    assert_eq!(
        TelegramAdapter::new(config).unwrap_err(),
        TelegramConfigError::Token
    );
}
