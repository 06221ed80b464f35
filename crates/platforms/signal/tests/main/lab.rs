//! An account, its daemon, and a reader of events that does not wait forever.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{Chat, Event, InMemoryState, Outgoing, ReceiveError, Received};
use hermetic_redact::{Redactor, Settings};
use hermetic_signal::{Groups, Signal, SignalConfig, Timing};
use hermetic_testkit::signal_server::{NUMBER, Person, ReceiveMode, SignalServer};
use hermetic_types::{ChatId, ChatKind, Incoming, Place};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// As Signal writes a group.
pub(crate) const GROUP: &str = "Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=";

pub(crate) struct Lab {
    pub(crate) server: SignalServer,
    pub(crate) signal: Arc<Signal>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<Received, ReceiveError>>;

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
        let signal = Arc::new(Signal::new(config).unwrap());
        Self { server, signal }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.signal.receive(CancellationToken::new())
    }
}

/// Quick, and listening to every group.
pub(crate) fn config(url: &str) -> SignalConfig {
    let state = Arc::new(InMemoryState::default());
    let mut config = SignalConfig::new(NUMBER, url.parse().unwrap(), state);
    config.hearing.groups = Groups::All;
    config.timing = Timing {
        request: Duration::from_secs(10),
        retry: (Duration::from_millis(2), Duration::from_millis(20)),
        throttle: Duration::from_secs(5),
        ping: Duration::from_secs(60),
        silence: Duration::from_secs(60),
    };
    config
}

pub(crate) async fn next(inbox: &mut Inbox<'_>) -> Received {
    timeout(PATIENCE, inbox.next())
        .await
        .expect("an event in time")
        .expect("the stream goes on")
        .unwrap()
}

/// The next message, stored.
pub(crate) async fn next_message(inbox: &mut Inbox<'_>) -> Incoming {
    let received = next(inbox).await;
    received.receipt.stored();
    message(received.event)
}

pub(crate) fn message(event: Event) -> Incoming {
    match event {
        Event::Message(message) => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

pub(crate) fn outgoing(text: impl AsRef<str>) -> Outgoing {
    Redactor::new([], Settings::default()).redact(text).into()
}

pub(crate) fn private(person: Person) -> Place {
    Place {
        chat: ChatId::new(person.uuid).unwrap(),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) fn group() -> Place {
    Place {
        chat: ChatId::new(GROUP).unwrap(),
        kind: ChatKind::Group,
        thread: None,
    }
}
