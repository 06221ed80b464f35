//! A bot, its server, and a reader of events that does not wait forever.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{AdapterState, Chat, Event, InMemoryState, Outgoing, ReceiveError, Received};
use hermetic_redact::{Redactor, Settings};
use hermetic_slack::{Intake, Slack, SlackConfig, Timing};
use hermetic_testkit::slack::{APP_TOKEN, BOT_TOKEN, SlackServer, WhileAway};
use hermetic_types::{ChatId, ChatKind, Incoming, Place, Press, Secret, ThreadId, UpdateId};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const ALICE: &str = "U0ALICE";
pub(crate) const ALICES_CHANNEL: &str = "D0ALICE";

pub(crate) struct Lab {
    pub(crate) server: SlackServer,
    pub(crate) slack: Arc<Slack>,
    /// What outlives the bot.
    pub(crate) state: Arc<dyn AdapterState>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<Received, ReceiveError>>;

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
        let slack = Arc::new(Slack::new(config, Arc::clone(&state)).unwrap());
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
    pub(crate) fn restarted(&self) -> Slack {
        Slack::new(config(&self.server.url()), Arc::clone(&self.state)).unwrap()
    }
}

pub(crate) fn config(url: &str) -> SlackConfig {
    let intake = Intake::SocketMode {
        app_token: Secret::new(APP_TOKEN),
    };
    SlackConfig {
        api_base: url.to_owned(),
        timing: timing(),
        ..SlackConfig::new(Secret::new(BOT_TOKEN), intake)
    }
}

pub(crate) fn timing() -> Timing {
    Timing {
        request: Duration::from_secs(10),
        retry: (Duration::from_millis(2), Duration::from_millis(20)),
        throttle: Duration::from_secs(5),
        ..Timing::default()
    }
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

/// The next message that is not known, stored. What was stored before a restart may come once more, under
/// the same name: the ledger knows it.
pub(crate) async fn next_unknown(inbox: &mut Inbox<'_>, known: &mut HashSet<UpdateId>) -> Incoming {
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
pub(crate) async fn next_press(inbox: &mut Inbox<'_>) -> Press {
    let received = next(inbox).await;
    received.receipt.stored();
    match received.event {
        Event::Press(press) => press,
        other => panic!("expected a press, got {other:?}"),
    }
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

pub(crate) fn private() -> Place {
    Place {
        chat: ChatId::new(ALICES_CHANNEL).unwrap(),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) fn thread(channel: &str, ts: &str) -> Place {
    Place {
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
