//! An account on a real homeserver, a person beside it, and a proxy between that spoils things.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{
    AdapterState, Chat, ChatEvent, InMemoryState, OutgoingText, ReceiveError, ReceivedEvent,
};
use hermetic_matrix::{HomeserverCredentials, MatrixAdapter, MatrixConfig, MatrixTiming};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_testkit::matrix::{MatrixPerson, MatrixProxy};
use hermetic_testkit::pypi::Synapse;
use hermetic_types::{
    ChatId, ChatKind, ChatPlace, IncomingMessage, Secret, SystemClock, ThreadId, UserId,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    pub(crate) synapse: Synapse,
    pub(crate) proxy: MatrixProxy,
    pub(crate) bot: MatrixPerson,
    pub(crate) alice: MatrixPerson,
    pub(crate) state: Arc<dyn AdapterState>,
    pub(crate) matrix: Arc<MatrixAdapter>,
    /// Alice's private room with the account.
    pub(crate) room: String,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    /// `None` where there is no Synapse, which is said.
    pub(crate) async fn new(test: &str) -> Option<Self> {
        Self::with(test, |_| {}).await
    }

    pub(crate) async fn with(test: &str, change: impl FnOnce(&mut MatrixConfig)) -> Option<Self> {
        match Synapse::shared().await {
            Ok(synapse) => Some(Self::on(synapse, change).await),
            Err(why) => {
                eprintln!("SKIP: {test}: no Synapse: {why}");
                None
            }
        }
    }

    pub(crate) async fn on(synapse: Synapse, change: impl FnOnce(&mut MatrixConfig)) -> Self {
        let proxy = MatrixProxy::start(synapse.url()).await.unwrap();
        let bot = MatrixPerson::register(synapse.url(), "bot").await.unwrap();
        let alice = MatrixPerson::register(synapse.url(), "alice")
            .await
            .unwrap();
        let room = alice.opens_private(&bot).await;
        bot.joins(&room).await;
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let mut config = config(proxy.url(), &bot, Arc::clone(&state));
        config.invites.from = [UserId::new(alice.user()).unwrap()].into();
        change(&mut config);
        let matrix = Arc::new(MatrixAdapter::new(config).unwrap());
        Self {
            synapse,
            proxy,
            bot,
            alice,
            state,
            matrix,
            room,
        }
    }

    /// Another process of the same account, with what the first one kept.
    pub(crate) fn restarted(&self) -> MatrixAdapter {
        let mut config = config(self.proxy.url(), &self.bot, Arc::clone(&self.state));
        config.invites.from = [UserId::new(self.alice.user()).unwrap()].into();
        MatrixAdapter::new(config).unwrap()
    }

    /// Listens, from now on: the first sync tells what there was before.
    pub(crate) async fn listen(&self) -> Inbox<'_> {
        listen(&self.matrix, &self.proxy).await
    }

    /// Until the position is written down, which is before the next sync.
    pub(crate) async fn settle(&self, inbox: &mut Inbox<'_>) {
        let asked = self.proxy.sync_count();
        tokio::select! {
            received = inbox.next() => panic!("nothing was said: {received:?}"),
            () = self.proxy.syncs(asked + 1) => {}
        }
    }

    pub(crate) fn private(&self) -> ChatPlace {
        private(&self.room)
    }
}

pub(crate) async fn listen<'a>(matrix: &'a MatrixAdapter, proxy: &MatrixProxy) -> Inbox<'a> {
    let mut inbox = matrix.receive(CancellationToken::new());
    let asked = proxy.sync_count();
    let waiting = async {
        tokio::select! {
            received = inbox.next() => panic!("nothing was said yet: {received:?}"),
            () = proxy.syncs(asked + 2) => {}
        }
    };
    timeout(PATIENCE, waiting)
        .await
        .expect("it connects in time");
    inbox
}

/// Quick, and with no thought for limits.
pub(crate) fn config(url: &str, bot: &MatrixPerson, state: Arc<dyn AdapterState>) -> MatrixConfig {
    let credentials = HomeserverCredentials::Token {
        token: Secret::new(bot.token()),
        user: None,
    };
    let mut config = MatrixConfig::new(url, credentials, state, SystemClock::shared());
    config.timing = MatrixTiming {
        request: Duration::from_secs(30),
        poll: Duration::from_secs(10),
        slack: Duration::from_secs(30),
        retry: (Duration::from_millis(2), Duration::from_millis(20)),
        throttle: Duration::from_secs(30),
        burst: 1000,
        refill: Duration::from_millis(1),
        key_patience: Duration::from_millis(500),
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

/// The next event, stored.
pub(crate) async fn next_event(inbox: &mut Inbox<'_>) -> ChatEvent {
    let received = next(inbox).await;
    received.receipt.stored();
    received.event
}

/// The next message, stored.
pub(crate) async fn next_message(inbox: &mut Inbox<'_>) -> IncomingMessage {
    message(next_event(inbox).await)
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

pub(crate) fn private(room: &str) -> ChatPlace {
    place(room, ChatKind::Dm, None)
}

pub(crate) fn place(room: &str, kind: ChatKind, thread: Option<&str>) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(room).unwrap(),
        kind,
        thread: thread.map(|root| ThreadId::new(root).unwrap()),
    }
}
