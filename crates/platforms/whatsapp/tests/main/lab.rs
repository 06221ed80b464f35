//! A business number, the WhatsApp it belongs to, and a reader of events that does not wait forever.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{Chat, ChatEvent, OutgoingText, ReceiveError, ReceivedEvent};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_testkit::whatsapp::{
    APP_SECRET, PHONE_NUMBER_ID, Person, TOKEN, VERIFY_TOKEN, WhatsAppServer,
};
use hermetic_types::{
    ButtonPress, ChatId, ChatKind, ChatPlace, IncomingMessage, Secret, SystemClock,
};
use hermetic_whatsapp::{CloudConfig, CloudTiming, WhatsAppCloud};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const ALICE: Person = Person {
    id: "US.13491208655302741918",
    number: Some("16505551234"),
    name: "Alice",
};

/// Somebody who hides their number.
pub(crate) const HIDDEN: Person = Person {
    id: "DE.9982716254",
    number: None,
    name: "16505551234",
};

pub(crate) struct Lab {
    pub(crate) server: WhatsAppServer,
    pub(crate) cloud: Arc<WhatsAppCloud>,
    serving: JoinHandle<()>,
}

pub(crate) type Inbox<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut CloudConfig)) -> Self {
        let server = WhatsAppServer::start().await.unwrap();
        let mut config = config(&server.url());
        change(&mut config);
        let cloud = Arc::new(WhatsAppCloud::new(config).unwrap());
        let serving = connect(&server, &cloud).await;
        Self {
            server,
            cloud,
            serving,
        }
    }

    pub(crate) fn listen(&self) -> Inbox<'_> {
        self.cloud.receive(CancellationToken::new())
    }

    /// Sends a text to somebody in private.
    pub(crate) async fn tell(
        &self,
        person: Person,
        text: &str,
    ) -> Result<Vec<hermetic_types::MessageId>, hermetic_chat::SendError> {
        let reply = hermetic_chat::ChatReply::text(outgoing(text));
        self.cloud.send(&private(person), &reply).await
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Has the adapter's intake served, and the server post to it.
pub(crate) async fn connect(server: &WhatsAppServer, cloud: &Arc<WhatsAppCloud>) -> JoinHandle<()> {
    let intake = Arc::clone(cloud).intake().expect("Meta posts to it");
    let path = intake.path.clone();
    let (url, serving) = serve(intake.mounted()).await;
    let (status, _) = server.subscribe(&format!("{url}{path}")).await;
    assert_eq!(status, 200);
    serving
}

pub(crate) fn config(url: &str) -> CloudConfig {
    CloudConfig {
        base_url: url.to_owned(),
        verify_token: Some(Secret::new(VERIFY_TOKEN)),
        timing: CloudTiming {
            request: Duration::from_secs(10),
            retry: (Duration::from_millis(2), Duration::from_millis(20)),
            throttle: Duration::from_secs(5),
            storing: Duration::from_secs(10),
            status: Duration::from_secs(10),
        },
        ..CloudConfig::new(
            PHONE_NUMBER_ID,
            Secret::new(TOKEN),
            Secret::new(APP_SECRET),
            SystemClock::shared(),
        )
    }
}

pub(crate) async fn next(inbox: &mut Inbox<'_>) -> ReceivedEvent {
    timeout(EVENT_TIMEOUT, inbox.next())
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

pub(crate) fn outgoing(text: impl AsRef<str>) -> OutgoingText {
    Redactor::new([], RedactorSettings::default())
        .redact(text)
        .into()
}

pub(crate) fn private(person: Person) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(person.id).unwrap(),
        kind: ChatKind::Dm,
        thread: None,
    }
}

pub(crate) async fn serve(router: axum::Router) -> (String, JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, serving)
}
