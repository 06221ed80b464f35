//! A bot, its server, and a reader of events that does not wait forever.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{
    AdapterState, Chat, ChatEvent, InMemoryState, OutgoingText, ReceiveError, ReceivedEvent,
};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_slack::{SlackAdapter, SlackConfig, SlackEventIntake, SlackTiming};
use hermetic_testkit::slack::{APP_TOKEN, BOT_TOKEN, SlackServer, WhileAway};
use hermetic_types::{
    ButtonPress, ChatId, ChatKind, ChatPlace, IncomingMessage, Secret, SystemClock, ThreadId,
    UpdateId,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const ALICE: &str = "U0ALICE";
pub(crate) const ALICES_CHANNEL: &str = "D0ALICE";

pub(crate) struct Lab {
    pub(crate) server: SlackServer,
    pub(crate) slack: Arc<SlackAdapter>,
    /// What outlives the bot.
    pub(crate) state: Arc<dyn AdapterState>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    /// People may speak before the bot listens.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut SlackConfig)) -> Self {
        let server = SlackServer::start().await.unwrap();
        server.while_away(WhileAway::Kept);
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let mut config = config(&server.url());
        change(&mut config);
        let slack = Arc::new(SlackAdapter::new(config, Arc::clone(&state)).unwrap());
        Self {
            server,
            slack,
            state,
        }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.slack.receive(CancellationToken::new())
    }

    /// The same bot in another process.
    pub(crate) fn restarted(&self) -> SlackAdapter {
        SlackAdapter::new(config(&self.server.url()), Arc::clone(&self.state)).unwrap()
    }
}

pub(crate) fn config(url: &str) -> SlackConfig {
    let intake = SlackEventIntake::SocketMode {
        app_token: Secret::new(APP_TOKEN),
    };
    SlackConfig {
        api_base: url.to_owned(),
        timing: timing(),
        ..SlackConfig::new(Secret::new(BOT_TOKEN), intake, SystemClock::shared())
    }
}

pub(crate) fn timing() -> SlackTiming {
    SlackTiming {
        request: Duration::from_secs(10),
        retry: (Duration::from_millis(2), Duration::from_millis(20)),
        throttle: Duration::from_secs(5),
        ..SlackTiming::default()
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

/// The next message that is not known, stored. What was stored before a restart may come once more, under
/// the same name: the ledger knows it.
pub(crate) async fn next_unknown(
    inbox: &mut Inbox<'_>,
    known: &mut HashSet<UpdateId>,
) -> IncomingMessage {
    loop {
        let message = next_message(inbox).await;
        if known.insert(message.update.clone()) {
            return message;
        }
    }
}

/// The texts of the next messages, stored.
pub(crate) async fn next_texts(inbox: &mut Inbox<'_>, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(next_message(inbox).await.text);
    }
    texts
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

pub(crate) fn private() -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(ALICES_CHANNEL).unwrap(),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) fn thread(channel: &str, ts: &str) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(channel).unwrap(),
        kind: ChatKind::Group,
        thread: Some(ThreadId::new(ts).unwrap()),
    }
}

/// The id of a message as the gateway knows it, as Slack knows it.
pub(crate) fn ts_of(message: &hermetic_types::MessageId) -> String {
    let (seconds, micros) = message.as_str().split_at(message.as_str().len() - 6);
    format!("{seconds}.{micros}")
}
