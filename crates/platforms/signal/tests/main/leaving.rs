//! What had come and was not stored when listening ended.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use hermetic_chat::{AdapterState, Chat, InMemoryState, Receipt, SaveDurability};
use hermetic_signal::SignalAdapter;
use hermetic_testkit::full_disk::FullDisk;
use hermetic_testkit::signal_server::{ALICE, ReceiveMode, SignalServer};
use tokio_util::sync::CancellationToken;

use crate::lab::{config, next, next_message};

#[tokio::test]
async fn what_had_come_when_listening_ended_is_handed_out_by_the_next_start() {
    // Over a socket, which can be ended in good order.
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let state: Arc<InMemoryState> = Arc::default();
    let open = || {
        let mut config = config(&server.socket_url());
        config.state = Arc::clone(&state) as _;
        SignalAdapter::new(config).unwrap()
    };
    let signal = open();
    let stop = CancellationToken::new();
    let mut inbox = signal.receive(stop.clone());
    for text in ["one", "two", "three"] {
        server.says(ALICE, text);
    }
    let first = next(&mut inbox).await;
    drop(first.receipt);
    stop.cancel();
    assert!(inbox.next().await.is_none());
    drop(inbox);
    assert_eq!(server.listeners(), 0, "nothing more is handed over");
    let reborn = open();
    let mut inbox = reborn.receive(CancellationToken::new());
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(next_message(&mut inbox).await.text);
    }
    assert_eq!(heard, ["one", "two", "three"]);
    server.says(ALICE, "four");
    assert_eq!(next_message(&mut inbox).await.text, "four");
    let left = state.load_all("left:").await.unwrap();
    assert_eq!(left, [], "stored is stored");
}

#[tokio::test]
async fn what_was_left_waits_for_a_store_that_can_be_read() {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let disk = Arc::<FullDisk>::default();
    let open = || {
        let mut config = config(&server.socket_url());
        config.state = Arc::clone(&disk) as _;
        SignalAdapter::new(config).unwrap()
    };
    let signal = open();
    let stop = CancellationToken::new();
    let mut inbox = signal.receive(stop.clone());
    server.says(ALICE, "left");
    drop(next(&mut inbox).await.receipt);
    stop.cancel();
    assert!(inbox.next().await.is_none());
    drop(inbox);
    // One that cannot be read is to be removed, and that fails.
    let unreadable = disk.save("left:0", "{", SaveDurability::OnDisk);
    unreadable.await.unwrap();
    disk.fill();
    let reborn = open();
    let mut inbox = reborn.receive(CancellationToken::new());
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = disk.wait_for_refusals(2) => {}
    }
    disk.make_room();
    assert_eq!(next_message(&mut inbox).await.text, "left");
}

/// What the next start hears first, after one that was told of a message and stopped with its receipt in this
/// state.
async fn heard_again_after(receipt: impl FnOnce(Receipt) -> Option<Receipt>) -> String {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let state: Arc<InMemoryState> = Arc::default();
    let open = || {
        let mut config = config(&server.socket_url());
        config.state = Arc::clone(&state) as _;
        // Longer than the test: only a stop ends a pause.
        config.timing.retry = (Duration::from_secs(600), Duration::from_secs(600));
        SignalAdapter::new(config).unwrap()
    };
    let signal = open();
    let stop = CancellationToken::new();
    let mut inbox = signal.receive(stop.clone());
    server.says(ALICE, "one");
    let kept = receipt(next(&mut inbox).await.receipt);
    assert!(inbox.next().now_or_never().is_none(), "nothing else came");
    stop.cancel();
    assert!(inbox.next().await.is_none());
    drop((kept, inbox));
    server.says(ALICE, "two");
    next_message(&mut open().receive(CancellationToken::new()))
        .await
        .text
}

#[tokio::test]
async fn a_stop_in_the_pause_after_a_failure_loses_nothing() {
    assert_eq!(heard_again_after(|_not_stored| None).await, "one");
}

#[tokio::test]
async fn what_is_being_stored_when_listening_ends_comes_again() {
    assert_eq!(heard_again_after(Some).await, "one");
}

#[tokio::test]
async fn what_was_stored_before_listening_ended_does_not_come_again() {
    let stored = |receipt: Receipt| {
        receipt.stored();
        None
    };
    assert_eq!(heard_again_after(stored).await, "two");
}
