//! A bot, its server, and a reader of events that does not wait forever.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{
    AdapterState, Chat, ChatEvent, ChatReply, InMemoryState, OutgoingText, ReceiveError,
    ReceivedEvent,
};
use hermetic_discord::{DiscordAdapter, DiscordConfig, DiscordTiming};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_testkit::discord::{CHANNEL, DiscordServer, TOKEN};
use hermetic_types::{
    ButtonPress, ChatId, ChatKind, ChatPlace, IncomingMessage, Secret, SystemClock, ThreadId,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const ALICE: u64 = 7;

pub(crate) struct Lab {
    pub(crate) server: DiscordServer,
    pub(crate) state: Arc<InMemoryState>,
    pub(crate) discord: Arc<DiscordAdapter>,
    stop: CancellationToken,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut DiscordConfig)) -> Self {
        Self::at(DiscordServer::start().await.unwrap(), change)
    }

    pub(crate) fn at(server: DiscordServer, change: impl FnOnce(&mut DiscordConfig)) -> Self {
        let state = Arc::new(InMemoryState::default());
        let mut config = config(&server.url());
        change(&mut config);
        let discord = DiscordAdapter::new(config, Arc::clone(&state) as Arc<dyn AdapterState>);
        Self {
            server,
            state,
            discord: Arc::new(discord.unwrap()),
            stop: CancellationToken::new(),
        }
    }

    /// Another process of the same bot, with what the first one left.
    pub(crate) fn restarted(self, change: impl FnOnce(&mut DiscordConfig)) -> Self {
        let mut config = config(&self.server.url());
        change(&mut config);
        let discord = DiscordAdapter::new(config, Arc::clone(&self.state) as Arc<dyn AdapterState>);
        Self {
            discord: Arc::new(discord.unwrap()),
            stop: CancellationToken::new(),
            ..self
        }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.discord.receive(self.stop.clone())
    }

    /// The end of listening, as a gateway that stops has it.
    pub(crate) async fn leave(&self, mut inbox: Inbox<'_>) {
        self.stop.cancel();
        let ended = timeout(PATIENCE, inbox.next()).await;
        assert!(ended.expect("an end in time").is_none());
    }

    /// The private place with Alice.
    pub(crate) fn private(&self) -> ChatPlace {
        place(self.server.private_channel(ALICE), ChatKind::Dm, None)
    }
}

pub(crate) fn config(url: &str) -> DiscordConfig {
    let quick = (Duration::from_millis(2), Duration::from_millis(20));
    DiscordConfig {
        base_url: url.to_owned(),
        timing: DiscordTiming {
            request: Duration::from_secs(10),
            retry: quick,
            throttle: Duration::from_secs(5),
            hello: Duration::from_secs(10),
            identify: quick,
            acknowledge: Duration::from_secs(2),
        },
        ..DiscordConfig::new(Secret::new(TOKEN), SystemClock::shared())
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

/// The next press, stored.
pub(crate) async fn next_press(inbox: &mut Inbox<'_>) -> ButtonPress {
    let received = next(inbox).await;
    received.receipt.stored();
    match received.event {
        ChatEvent::Press(press) => press,
        other => panic!("expected a press, got {other:?}"),
    }
}

/// Listens until something else is done; what is heard meanwhile fails the test.
pub(crate) async fn listening_until<T>(inbox: &mut Inbox<'_>, done: impl Future<Output = T>) -> T {
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        done = timeout(PATIENCE, done) => done.expect("in time"),
    }
}

pub(crate) fn outgoing(text: impl AsRef<str>) -> OutgoingText {
    Redactor::new([], RedactorSettings::default())
        .redact(text)
        .into()
}

pub(crate) fn reply(words: impl AsRef<str>) -> ChatReply {
    ChatReply::text(outgoing(words))
}

pub(crate) fn place(chat: u64, kind: ChatKind, thread: Option<u64>) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(chat.to_string()).unwrap(),
        kind,
        thread: thread.map(|id| ThreadId::new(id.to_string()).unwrap()),
    }
}

/// A thread of the only channel.
pub(crate) fn thread(id: u64) -> ChatPlace {
    place(CHANNEL, ChatKind::Thread, Some(id))
}
