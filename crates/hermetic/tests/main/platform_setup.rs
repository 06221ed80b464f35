//! `hermetic gateway setup` of every platform: credentials that are right, wrong, and not to be tried.

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use hermetic_testkit::signal_server::{NUMBER, ReceiveMode, SignalServer};
use hermetic_testkit::{discord, slack, whatsapp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::hermetic::Hermetic;

/// What setting a platform up is given in the environment, and what it leaves in `.env`.
struct SetUpPlatform {
    name: &'static str,
    config: String,
    right: Vec<(&'static str, String)>,
    /// One of them, and a value that the platform does not take.
    wrong: (&'static str, &'static str),
    /// What is shown of the account.
    shown: &'static str,
}

impl SetUpPlatform {
    fn ends(&self, hermetic: &Hermetic, more: &[&str]) -> (i32, String) {
        let arguments = ["gateway", "setup", self.name, "--non-interactive"];
        let ended = hermetic.run(&[&arguments[..], more].concat());
        (ended.code, format!("{}{}", ended.out, ended.err))
    }

    fn with(&self, values: &[(&str, String)]) -> Hermetic {
        let home = Hermetic::with(&self.config);
        values
            .iter()
            .fold(home, |home, (name, value)| home.variable(name, value))
    }

    fn accepts_what_is_right_and_writes_nothing_else(&self) {
        let right = self.with(&self.right);
        let (code, said) = self.ends(&right, &["--allow", "U0123ABCD"]);
        assert_eq!(code, 0, "{}: {said}", self.name);
        assert!(said.contains(self.shown), "{}: {said}", self.name);
        let written = dotenv(&right);
        for (name, value) in &self.right {
            assert!(written.contains(&format!("{name}={value}\n")), "{written}");
        }

        let mut values = self.right.clone();
        for (name, value) in &mut values {
            if *name == self.wrong.0 {
                self.wrong.1.clone_into(value);
            }
        }
        let wrong = self.with(&values);
        let (code, said) = self.ends(&wrong, &[]);
        assert_eq!(code, 1, "{}: {said}", self.name);
        assert!(said.contains("FAILS"), "{}: {said}", self.name);
        assert!(!said.contains(self.wrong.1), "{}: {said}", self.name);
        assert_eq!(dotenv(&wrong), "", "{}", self.name);
    }

    /// Once nobody listens at its address.
    fn keeps_nothing_untried(&self) {
        let unreachable = self.with(&self.right);
        let (code, said) = self.ends(&unreachable, &[]);
        assert_eq!(code, 1, "{}: {said}", self.name);
        assert!(said.contains("--unchecked"), "{}: {said}", self.name);
        assert_eq!(dotenv(&unreachable), "", "{}", self.name);
        let (code, said) = self.ends(&unreachable, &["--unchecked"]);
        assert_eq!(code, 0, "{}: {said}", self.name);
        assert!(!dotenv(&unreachable).is_empty());
    }
}

fn dotenv(hermetic: &Hermetic) -> String {
    std::fs::read_to_string(hermetic.path(".env")).unwrap_or_default()
}

fn owned(values: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let values = values.iter();
    values
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn discord_is_set_up() {
    let server = discord::DiscordServer::start().await.unwrap();
    let platform = SetUpPlatform {
        name: "discord",
        config: format!("platforms: {{discord: {{base_url: '{}'}}}}\n", server.url()),
        right: owned(&[("DISCORD_BOT_TOKEN", discord::TOKEN)]),
        wrong: ("DISCORD_BOT_TOKEN", "NDI.another-token"),
        shown: "works",
    };
    platform.accepts_what_is_right_and_writes_nothing_else();
    drop(server);
    platform.keeps_nothing_untried();
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_is_set_up_by_sockets_or_by_requests() {
    let server = slack::SlackServer::start().await.unwrap();
    let config = format!("platforms: {{slack: {{base_url: '{}'}}}}\n", server.url());
    let platform = SetUpPlatform {
        name: "slack",
        config: config.clone(),
        right: owned(&[
            ("SLACK_BOT_TOKEN", slack::BOT_TOKEN),
            ("SLACK_APP_TOKEN", slack::APP_TOKEN),
        ]),
        wrong: ("SLACK_BOT_TOKEN", "xoxb-another-token"),
        shown: "works",
    };
    platform.accepts_what_is_right_and_writes_nothing_else();
    let by_requests = SetUpPlatform {
        config,
        right: owned(&[
            ("SLACK_BOT_TOKEN", slack::BOT_TOKEN),
            ("SLACK_EVENTS_URL", "https://bot.example/slack/events"),
            ("SLACK_SIGNING_SECRET", "8f742231b10e8888abcd99yyyzzz85a5"),
        ]),
        ..platform
    };
    by_requests.accepts_what_is_right_and_writes_nothing_else();
    // Half of it is not enough.
    let half = by_requests.with(&by_requests.right[..2]);
    let (code, said) = by_requests.ends(&half, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("SLACK_APP_TOKEN is not set"), "{said}");
    drop(server);
    by_requests.keeps_nothing_untried();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatsapp_is_set_up() {
    let server = whatsapp::WhatsAppServer::start().await.unwrap();
    let platform = SetUpPlatform {
        name: "whatsapp",
        config: format!(
            "platforms: {{whatsapp_cloud: {{base_url: '{}'}}}}\n",
            server.url()
        ),
        right: owned(&[
            ("WHATSAPP_CLOUD_PHONE_NUMBER_ID", whatsapp::PHONE_NUMBER_ID),
            ("WHATSAPP_CLOUD_ACCESS_TOKEN", whatsapp::TOKEN),
            ("WHATSAPP_CLOUD_APP_SECRET", whatsapp::APP_SECRET),
            ("WHATSAPP_CLOUD_VERIFY_TOKEN", whatsapp::VERIFY_TOKEN),
        ]),
        wrong: ("WHATSAPP_CLOUD_ACCESS_TOKEN", "EAAanother-token"),
        shown: "whatsapp",
    };
    platform.accepts_what_is_right_and_writes_nothing_else();
    drop(server);
    platform.keeps_nothing_untried();
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_is_set_up() {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let platform = SetUpPlatform {
        name: "signal",
        config: String::new(),
        right: vec![
            ("SIGNAL_HTTP_URL", server.url()),
            ("SIGNAL_ACCOUNT", NUMBER.to_owned()),
        ],
        wrong: ("SIGNAL_ACCOUNT", "+4915100000099"),
        shown: "works",
    };
    let right = platform.with(&platform.right);
    let (code, said) = platform.ends(&right, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(dotenv(&right).contains("SIGNAL_ACCOUNT=+49151"), "{said}");
    let wrong = [
        platform.right[0].clone(),
        owned(&[platform.wrong]).remove(0),
    ];
    let wrong = platform.with(&wrong);
    let (code, said) = platform.ends(&wrong, &[]);
    assert_eq!((code, dotenv(&wrong).as_str()), (1, ""), "{said}");
    assert!(said.contains("FAILS"), "{said}");
    // Unlinked at the phone: the daemon answers all the same.
    server.unlink();
    let unlinked = platform.with(&platform.right);
    let (code, said) = platform.ends(&unlinked, &[]);
    assert_eq!((code, dotenv(&unlinked).as_str()), (1, ""), "{said}");
    drop(server);
    platform.keeps_nothing_untried();
}

#[tokio::test(flavor = "multi_thread")]
async fn matrix_is_set_up_by_a_token_or_by_a_password() {
    let (url, server) = homeserver().await;
    let config = format!("matrix: {{homeserver: '{url}'}}\n");
    let by_token = SetUpPlatform {
        name: "matrix",
        // The address stands in the file, and stays there.
        config: config.clone(),
        right: owned(&[("MATRIX_ACCESS_TOKEN", "syt_right")]),
        wrong: ("MATRIX_ACCESS_TOKEN", "syt_another"),
        shown: "@bot:example.org",
    };
    by_token.accepts_what_is_right_and_writes_nothing_else();
    let by_password = SetUpPlatform {
        right: owned(&[
            ("MATRIX_USER_ID", "@bot:example.org"),
            ("MATRIX_PASSWORD", "open-sesame"),
        ]),
        wrong: ("MATRIX_PASSWORD", "shut-sesame"),
        config,
        ..by_token
    };
    by_password.accepts_what_is_right_and_writes_nothing_else();
    let written = by_password.with(&by_password.right);
    by_password.ends(&written, &[]);
    assert!(!dotenv(&written).contains("MATRIX_HOMESERVER"));
    let half = by_password.with(&by_password.right[..1]);
    let (_, said) = by_password.ends(&half, &[]);
    assert!(said.contains("MATRIX_ACCESS_TOKEN is not set"), "{said}");
    server.abort();
    // Nobody listens any more once the task is gone.
    let _ = server.await;
    by_password.keeps_nothing_untried();
}

/// As much of a homeserver as tells whether credentials are good.
async fn homeserver() -> (String, JoinHandle<()>) {
    let is_ours = |headers: &HeaderMap| {
        let token = headers.get("authorization");
        token.is_some_and(|token| token == "Bearer syt_right")
    };
    let refused = || {
        let why = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "Unrecognised access token" });
        (StatusCode::UNAUTHORIZED, axum::Json(why))
    };
    let versions = async || axum::Json(json!({ "versions": ["v1.11"] }));
    let whoami = async move |headers: HeaderMap| match is_ours(&headers) {
        true => (
            StatusCode::OK,
            axum::Json(json!({ "user_id": "@bot:example.org", "device_id": "BOT" })),
        ),
        false => refused(),
    };
    let rooms = async || axum::Json(json!({ "joined_rooms": [] }));
    let login = async |body: axum::Json<Value>| match body["password"] == "open-sesame" {
        true => (
            StatusCode::OK,
            axum::Json(json!({
                "user_id": "@bot:example.org", "access_token": "syt_right", "device_id": "BOT",
            })),
        ),
        false => (
            StatusCode::FORBIDDEN,
            axum::Json(json!({ "errcode": "M_FORBIDDEN", "error": "Invalid password" })),
        ),
    };
    let router = Router::new()
        .route("/_matrix/client/versions", get(versions))
        .route("/_matrix/client/v3/account/whoami", get(whoami))
        .route("/_matrix/client/v3/joined_rooms", get(rooms))
        .route("/_matrix/client/v3/login", post(login))
        .route(
            "/_matrix/client/v3/logout",
            post(async || axum::Json(json!({}))),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        // It ends when it is aborted.
        let _ = axum::serve(listener, router).await;
    });
    (url, serving)
}
