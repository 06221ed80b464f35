//! An account, its daemon, and a reader of events that does not wait forever.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{Chat, ChatEvent, InMemoryState, OutgoingText, ReceiveError, ReceivedEvent};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_signal::{HeardGroups, SignalAdapter, SignalConfig, SignalTiming};
use hermetic_testkit::signal_server::{NUMBER, Person, ReceiveMode, SignalServer};
use hermetic_types::{ChatId, ChatKind, ChatPlace, IncomingMessage, SystemClock};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// As Signal writes a group.
pub(crate) const GROUP: &str = "Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=";

pub(crate) struct Lab {
    pub(crate) server: SignalServer,
    pub(crate) signal: Arc<SignalAdapter>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut SignalConfig)) -> Self {
        let server = SignalServer::start(ReceiveMode::OnConnection)
            .await
            .unwrap();
        let mut config = config(&server.url());
        change(&mut config);
        let signal = Arc::new(SignalAdapter::new(config).unwrap());
        Self { server, signal }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.signal.receive(CancellationToken::new())
    }
}

/// Quick, and listening to every group.
pub(crate) fn config(url: &str) -> SignalConfig {
    let state = Arc::new(InMemoryState::default());
    let mut config = SignalConfig::new(NUMBER, url.parse().unwrap(), state, SystemClock::shared());
    config.hearing.groups = HeardGroups::All;
    config.timing = SignalTiming {
        request: Duration::from_secs(10),
        retry: (Duration::from_millis(2), Duration::from_millis(20)),
        throttle: Duration::from_secs(5),
        ping: Duration::from_secs(60),
        prove: Duration::from_secs(60),
        silence: Duration::from_secs(60),
    };
    config
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

pub(crate) fn private(person: Person) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(person.uuid).unwrap(),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) fn group() -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(GROUP).unwrap(),
        kind: ChatKind::Group,
        thread: None,
    }
}
