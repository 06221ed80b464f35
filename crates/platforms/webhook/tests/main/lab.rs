//! A reader of events that does not wait forever, and a port on loopback.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_chat::{Event, Outgoing, ReceiveError, Received};
use hermetic_redact::{Redactor, Settings};
use hermetic_types::Incoming;
use tokio::time::timeout;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) type Inbox<'a> = BoxStream<'a, Result<Received, ReceiveError>>;

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

pub(crate) async fn serve(router: axum::Router) -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, serving)
}
