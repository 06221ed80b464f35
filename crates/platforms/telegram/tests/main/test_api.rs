//! Against npm `telegram-test-api`, which others wrote: message in, reply out.

use hermetic_chat::{Chat, ChatReply};
use hermetic_telegram::TelegramAdapter;
use hermetic_testkit::npm::TelegramTestApi;
use hermetic_testkit::telegram::TOKEN;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::{PATIENCE, config, next_message, outgoing};

#[tokio::test]
async fn a_message_is_answered_on_a_server_of_others() {
    let server = match TelegramTestApi::start().await {
        Ok(server) => server,
        Err(why) => {
            eprintln!("SKIP: a_message_is_answered_on_a_server_of_others: {why}");
            return;
        }
    };
    let url = server.url();
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    let said = json!({
        "botToken": TOKEN,
        "from": { "id": 7, "first_name": "Ann", "username": "ann" },
        "chat": { "id": 7, "first_name": "Ann", "username": "ann", "type": "private" },
        "date": 1_700_000_000,
        "text": "ping",
    });
    let sent = client
        .post(format!("{url}/sendMessage"))
        .json(&said)
        .send()
        .await
        .unwrap();
    assert!(sent.status().is_success(), "{}", sent.status());

    let telegram = TelegramAdapter::new(config(&url)).unwrap();
    let mut inbox = telegram.receive(CancellationToken::new());
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.sender.id.as_str()),
        ("ping", "7")
    );
    let reply = ChatReply::text(outgoing("**pong**"));
    let ids = telegram.send(&heard.place, &reply).await.unwrap();
    assert_eq!(ids.len(), 1);

    let seen: Value = client
        .post(format!("{url}/getUpdates"))
        .json(&json!({ "token": TOKEN, "chatId": "7" }))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(seen.to_string().contains("*pong*"), "{seen}");
    // It answers an edit with `ok` and no result, which is enough.
    let pang = outgoing("pang");
    let edited = telegram.edit(&heard.place, &ids[0], &pang, &[]);
    edited.await.unwrap();
}
