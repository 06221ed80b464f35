//! No room on the disk for what the adapter remembers.

use std::sync::Arc;

use futures::StreamExt;
use hermetic_chat::Chat;
use hermetic_signal::{SignalAdapter, SignalConfig};
use hermetic_testkit::full_disk::FullDisk;
use hermetic_testkit::signal_server::{ALICE, NUMBER, ReceiveMode, SignalServer};
use hermetic_types::{SystemClock, UserId};
use tokio_util::sync::CancellationToken;

use crate::lab::{config, next_message};

/// The daemon has forgotten it by then, so it waits here.
#[tokio::test]
async fn a_message_of_somebody_listed_who_cannot_be_kept_waits() {
    let server = SignalServer::start(ReceiveMode::OnConnection);
    let (server, disk) = (server.await.unwrap(), Arc::<FullDisk>::default());
    let state = Arc::clone(&disk);
    let mut own = SignalConfig::new(
        NUMBER,
        server.url().parse().unwrap(),
        state,
        SystemClock::shared(),
    );
    own.timing = config(&server.url()).timing;
    own.listed = vec![UserId::new(ALICE.number.unwrap()).unwrap()];
    let signal = SignalAdapter::new(own).unwrap();
    let mut inbox = signal.receive(CancellationToken::new());
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = server.wait_for_listeners(1) => {}
    }
    disk.fill();
    server.says(ALICE, "hello");
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = disk.wait_for_refusals(2) => {}
    }
    disk.make_room();
    let heard = next_message(&mut inbox).await;
    // By the name she is listed with, or she would be a stranger.
    assert_eq!(
        (heard.text.as_str(), Some(heard.sender.id.as_str())),
        ("hello", ALICE.number)
    );
}
