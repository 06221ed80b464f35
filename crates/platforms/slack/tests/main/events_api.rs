//! Events that Slack posts.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{Chat, HttpIntake};
use hermetic_slack::{
    SIGNATURE_HEADER, SlackAdapter, SlackConfig, SlackEventIntake, TIMESTAMP_HEADER,
};
use hermetic_testkit::slack::{CHANNEL, TEAM};
use hermetic_types::{Clock as _, Secret, SystemClock};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::lab::{ALICE, ALICES_CHANNEL, Inbox, Lab, PATIENCE, next, next_message, next_press};

const SECRET: &str = "a-signing-secret";
const URL: &str = "https://bot.example/slack/events";

/// The bot's own port.
struct Posted {
    lab: Lab,
    address: String,
    client: reqwest::Client,
    _serving: tokio_util::task::AbortOnDropHandle<()>,
}

fn by_requests(config: &mut SlackConfig) {
    config.intake = SlackEventIntake::EventsApi {
        url: URL.to_owned(),
        signing_secret: Secret::new(SECRET),
    };
}

async fn posted(change: impl FnOnce(&mut SlackConfig)) -> Posted {
    let lab = Lab::with(|config| {
        by_requests(config);
        change(config);
    })
    .await;
    let intake: HttpIntake = Arc::clone(&lab.slack).intake().unwrap();
    assert_eq!(intake.path, "slack/events");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/slack/events", listener.local_addr().unwrap());
    let router = intake.mounted();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    Posted {
        lab,
        address,
        client,
        _serving: tokio_util::task::AbortOnDropHandle::new(serving),
    }
}

fn signature(secret: &str, timestamp: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{timestamp}:{body}").as_bytes());
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={hex}")
}

impl Posted {
    async fn post(&self, kind: &str, body: String) -> (u16, String) {
        let now = SystemClock.now().seconds();
        self.post_signed(kind, body.clone(), &signature(SECRET, now, &body), now)
            .await
    }

    async fn post_signed(
        &self,
        kind: &str,
        body: String,
        signature: &str,
        at: i64,
    ) -> (u16, String) {
        let request = self
            .client
            .post(&self.address)
            .header("content-type", kind)
            .header(SIGNATURE_HEADER, signature)
            .header(TIMESTAMP_HEADER, at.to_string());
        let response = request.body(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn json(&self, payload: Value) -> u16 {
        self.post("application/json", payload.to_string()).await.0
    }

    async fn form(&self, fields: &[(&str, &str)]) -> u16 {
        let mut url = reqwest::Url::parse("form:").unwrap();
        url.query_pairs_mut().extend_pairs(fields);
        let body = url.query().unwrap().to_owned();
        self.post("application/x-www-form-urlencoded", body).await.0
    }

    fn event(&self, ts: &str, text: &str) -> Value {
        self.lab.server.callback(&json!({
            "type": "message", "channel": ALICES_CHANNEL, "user": ALICE, "text": text, "ts": ts,
        }))
    }
}

/// Until the bot knows who it is, requests are put off.
async fn until_ready(posted: &Posted, inbox: &mut Inbox<'_>) {
    let event = posted.event("1700000000.000001", "are you there?");
    let ready = async {
        while posted.json(event.clone()).await != 200 {
            tokio::task::yield_now().await;
        }
    };
    let heard = async { next_message(inbox).await };
    tokio::join!(ready, heard);
}

#[tokio::test]
async fn an_event_is_answered_when_it_is_stored() {
    let posted = posted(|_| {}).await;
    let mut inbox = posted.lab.listen();
    until_ready(&posted, &mut inbox).await;
    let event = posted.event("1700000000.000100", "hello");
    let (status, heard) = tokio::join!(posted.json(event.clone()), next_message(&mut inbox));
    assert_eq!((status, heard.text.as_str()), (200, "hello"));
    // Slack doubts and posts it again: known.
    assert_eq!(posted.json(event).await, 200);
    let other = posted.event("1700000000.000200", "more");
    let (_, heard) = tokio::join!(posted.json(other), next_message(&mut inbox));
    assert_eq!(heard.text, "more");
}

#[tokio::test]
async fn an_event_that_is_not_stored_in_time_is_posted_again() {
    let posted = posted(|config| config.timing.storing = Duration::from_millis(300)).await;
    let mut inbox = posted.lab.listen();
    until_ready(&posted, &mut inbox).await;
    let event = posted.event("1700000000.000100", "slow");
    let (status, received) = tokio::join!(posted.json(event.clone()), next(&mut inbox));
    assert_eq!(status, 503);
    // While it waits, its repetition waits for the same receipt.
    let again = async {
        let status = posted.json(event.clone()).await;
        assert!(matches!(status, 200 | 503), "{status}");
    };
    let stored = async { received.receipt.stored() };
    tokio::join!(again, stored);
    let last = async { while posted.json(event.clone()).await != 200 {} };
    last.await;
}

#[tokio::test]
async fn whoever_does_not_sign_learns_nothing() {
    let posted = posted(|_| {}).await;
    let mut inbox = posted.lab.listen();
    until_ready(&posted, &mut inbox).await;
    let now = SystemClock.now().seconds();
    let event = posted.event("1700000000.000100", "forged").to_string();
    let challenge = json!({ "type": "url_verification", "challenge": "c" }).to_string();
    for (body, signature, at) in [
        (&event, signature("another secret", now, &event), now),
        (&event, signature(SECRET, now, &challenge), now),
        (&event, signature(SECRET, now - 301, &event), now - 301),
        (&event, signature(SECRET, now, &event), now + 1),
        (&challenge, String::new(), now),
    ] {
        let (status, said) = posted
            .post_signed("application/json", body.clone(), &signature, at)
            .await;
        assert_eq!((status, said.as_str()), (404, ""));
    }
    let (status, said) = posted.post("application/json", challenge).await;
    assert_eq!((status, said.as_str()), (200, r#"{"challenge":"c"}"#));
    let honest = posted.event("1700000000.000200", "honest");
    let (_, heard) = tokio::join!(posted.json(honest), next_message(&mut inbox));
    assert_eq!(heard.text, "honest");
}

#[tokio::test]
async fn presses_and_commands_come_as_forms() {
    let posted = posted(|_| {}).await;
    let mut inbox = posted.lab.listen();
    until_ready(&posted, &mut inbox).await;
    let press = posted
        .lab
        .server
        .press(ALICE, ALICES_CHANNEL, "1700000000.000100", "q1:yes");
    let press = press.to_string();
    let fields = [("payload", press.as_str())];
    let (status, press) = tokio::join!(posted.form(&fields), next_press(&mut inbox));
    assert_eq!((status, press.data.as_str()), (200, "q1:yes"));
    let fields = [
        ("command", "/sh"),
        ("text", "echo a&b + c"),
        ("user_id", ALICE),
        ("channel_id", CHANNEL),
        ("team_id", TEAM),
        ("trigger_id", "1.2.3"),
    ];
    let (status, heard) = tokio::join!(posted.form(&fields), next_message(&mut inbox));
    assert_eq!((status, heard.text.as_str()), (200, "/sh echo a&b + c"));
    // What is nothing is answered, or Slack would post it for hours.
    assert_eq!(posted.form(&[("ssl_check", "1")]).await, 200);
    assert_eq!(posted.form(&[("payload", "{")]).await, 200);
    assert_eq!(posted.post("application/json", "{".to_owned()).await.0, 200);
    assert_eq!(
        posted.json(json!({ "type": "app_rate_limited" })).await,
        200
    );
}

#[tokio::test]
async fn nobody_is_answered_before_we_know_who_we_are() {
    let posted = posted(|_| {}).await;
    let event = posted.event("1700000000.000100", "early");
    assert_eq!(posted.json(event).await, 503);
}

#[test]
fn credentials_of_another_shape_are_refused_and_never_shown() {
    use hermetic_chat::InMemoryState;
    use hermetic_slack::SlackConfigError;

    let made = |token: &str, intake: SlackEventIntake| {
        let config = SlackConfig::new(Secret::new(token), intake, SystemClock::shared());
        assert!(!format!("{config:?}").contains("secret-part"), "{config:?}");
        let slack = SlackAdapter::new(config, Arc::new(InMemoryState::default()));
        slack.map(|slack| assert!(!format!("{slack:?}").contains("secret-part")))
    };
    let socket = |token: &str| SlackEventIntake::SocketMode {
        app_token: Secret::new(token),
    };
    let events = |secret: &str| SlackEventIntake::EventsApi {
        url: URL.to_owned(),
        signing_secret: Secret::new(secret),
    };
    let (bot, app) = ("xoxb-1-secret-part", "xapp-1-secret-part");
    assert_eq!(made(bot, socket(app)), Ok(()));
    assert_eq!(made(bot, events("secret-part")), Ok(()));
    assert_eq!(made(app, socket(app)), Err(SlackConfigError::BotToken));
    assert_eq!(
        made("xoxb-1 2", socket(app)),
        Err(SlackConfigError::BotToken)
    );
    assert_eq!(made(bot, socket(bot)), Err(SlackConfigError::AppToken));
    assert_eq!(made(bot, events("")), Err(SlackConfigError::SigningSecret));
}

#[tokio::test]
async fn where_slack_could_not_reach_us_the_histories_are_read() {
    let posted = posted(|_| {}).await;
    let mut inbox = posted.lab.listen();
    until_ready(&posted, &mut inbox).await;
    let message = json!({ "text": "nobody heard me" });
    posted.lab.server.writes(ALICES_CHANNEL, ALICE, message);
    let held_back =
        json!({ "type": "app_rate_limited", "team_id": TEAM, "minute_rate_limited": 1 });
    assert_eq!(posted.json(held_back.clone()).await, 200);
    assert_eq!(next_message(&mut inbox).await.text, "nobody heard me");
    // Said again and again, it is not looked for each time.
    let read = posted.lab.server.tries("conversations.history");
    assert_eq!(posted.json(held_back).await, 200);
    let other = posted.event("1700000000.000200", "more");
    let (_, heard) = tokio::join!(posted.json(other), next_message(&mut inbox));
    assert_eq!(heard.text, "more");
    assert_eq!(posted.lab.server.tries("conversations.history"), read);
}
