//! A bot, its server, and a reader of events that does not wait forever.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{Chat, ChatEvent, OutgoingText, ReceiveError, ReceivedEvent};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_telegram::{TelegramAdapter, TelegramConfig, TelegramTiming};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use hermetic_types::{ChatId, ChatKind, ChatPlace, IncomingMessage, Secret, SystemClock};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Lab {
    pub(crate) server: TelegramServer,
    pub(crate) telegram: Arc<TelegramAdapter>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut TelegramConfig)) -> Self {
        let server = TelegramServer::start().await.unwrap();
        let mut config = config(&server.url());
        change(&mut config);
        let telegram = Arc::new(TelegramAdapter::new(config).unwrap());
        Self { server, telegram }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.telegram.receive(CancellationToken::new())
    }
}

pub(crate) fn config(url: &str) -> TelegramConfig {
    TelegramConfig {
        api_base: url.to_owned(),
        timing: TelegramTiming {
            poll: Duration::from_secs(5),
            request: Duration::from_secs(10),
            retry: (Duration::from_millis(2), Duration::from_millis(20)),
            conflict: Duration::from_millis(2),
            throttle: Duration::from_secs(5),
            storing: Duration::from_secs(10),
        },
        ..TelegramConfig::new(Secret::new(TOKEN), SystemClock::shared())
    }
}

pub(crate) async fn next(inbox: &mut Inbox<'_>) -> ReceivedEvent {
    timeout(PATIENCE, inbox.next())
        .await
        .expect("an event in time")
        .expect("the stream goes on")
        .unwrap()
}

/// The next message, stored.
pub(crate) async fn next_message(inbox: &mut Inbox<'_>) -> IncomingMessage {
    let received = next(inbox).await;
    received.receipt.stored();
    message(received.event)
}

pub(crate) fn message(event: ChatEvent) -> IncomingMessage {
    match event {
        ChatEvent::Message(message) => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

pub(crate) fn outgoing(text: impl AsRef<str>) -> OutgoingText {
    Redactor::new([], RedactorSettings::default())
        .redact(text)
        .into()
}

pub(crate) fn private(chat: i64) -> ChatPlace {
    ChatPlace {
        chat: ChatId::from(chat),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) async fn serve(router: axum::Router) -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, serving)
}
