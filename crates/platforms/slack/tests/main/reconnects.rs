//! Sockets that go, and what becomes of events meanwhile.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Chat, ChatState, ReceiveError};
use hermetic_testkit::chat_state::wait_until_retrying;
use hermetic_testkit::slack::{Failure, WhileAway};
use tokio::time::timeout;

use crate::lab::{ALICE, Lab, PATIENCE, next, next_message, next_texts};

#[tokio::test]
async fn the_next_socket_is_open_before_the_old_one_goes() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "on the first");
    assert_eq!(next_texts(&mut inbox, 1).await, ["on the first"]);
    // Nothing is kept from here on: a gap would lose what is said in it.
    lab.server.while_away(WhileAway::Lost);
    lab.server.announce_disconnect("refresh_requested");
    lab.server.wait_for_sockets(2).await;
    assert_eq!(lab.server.open_sockets(), 2);
    // The server still uses the older one.
    lab.server.says(ALICE, "on the old one");
    assert_eq!(next_texts(&mut inbox, 1).await, ["on the old one"]);
    lab.server.wait_until_acknowledged().await;
    lab.server.close_oldest();
    lab.server.wait_for_open_sockets(1).await;
    lab.server.says(ALICE, "on the new one");
    assert_eq!(next_texts(&mut inbox, 1).await, ["on the new one"]);
    assert_eq!(lab.slack.state(), ChatState::Connected);
}

#[tokio::test]
async fn a_socket_that_dies_between_event_and_acknowledgement_loses_nothing() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "hello");
    let received = next(&mut inbox).await;
    lab.server.cut_sockets();
    lab.server.wait_for_sockets(2).await;
    received.receipt.stored();
    // It is sent again on the next socket, is known there and acknowledged; only what follows is new.
    lab.server.wait_until_acknowledged().await;
    lab.server.says(ALICE, "more");
    assert_eq!(next_texts(&mut inbox, 1).await, ["more"]);
}

#[tokio::test]
async fn a_socket_that_is_open_and_deaf_is_noticed() {
    let quick = |config: &mut hermetic_slack::SlackConfig| {
        config.timing.ping = Duration::from_millis(20);
        config.timing.silence = Duration::from_millis(500);
    };
    let lab = Lab::with(quick).await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "one");
    next_message(&mut inbox).await;
    lab.server.freeze_newest();
    // Said into a socket that nobody reads any more.
    lab.server.says(ALICE, "two");
    lab.server.wait_for_sockets(2).await;
    assert_eq!(next_texts(&mut inbox, 1).await, ["two"]);
}

#[tokio::test]
async fn many_sockets_that_close_at_once_are_not_opened_at_full_speed() {
    let lab = Lab::with(|config| {
        config.timing.retry = (Duration::from_secs(3600), Duration::from_secs(3600));
    })
    .await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "one");
    next_message(&mut inbox).await;
    lab.server.cut_sockets();
    lab.server.wait_for_open_sockets(0).await;
    // The stream has to be polled for nothing: what listens is a task of its own.
    tokio::select! {
        noticed = timeout(PATIENCE, wait_until_retrying(&*lab.slack)) => drop(noticed.unwrap()),
        _ = inbox.next() => panic!("nothing was said"),
    }
    assert_eq!(lab.server.tries("apps.connections.open"), 1);
}

#[tokio::test]
async fn what_may_pass_is_ridden_out_and_what_may_not_ends_the_stream() {
    let lab = Lab::new().await;
    for failure in [
        Failure::BadGateway,
        Failure::Drop,
        Failure::Throttle(0),
        Failure::Refuse("internal_error"),
    ] {
        lab.server.fail_next("auth.test", failure.clone());
        lab.server.fail_next("apps.connections.open", failure);
    }
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "patience");
    assert_eq!(next_texts(&mut inbox, 1).await, ["patience"]);
    drop(inbox);

    for (method, error) in [
        ("auth.test", "invalid_auth"),
        ("apps.connections.open", "missing_scope"),
    ] {
        let lab = Lab::new().await;
        lab.server.fail_next(method, Failure::Refuse(error));
        let mut inbox = lab.listen();
        let last = timeout(PATIENCE, inbox.next()).await.unwrap().unwrap();
        let Err(ReceiveError::Ended { description, .. }) = last else {
            panic!("{last:?}");
        };
        assert!(description.contains(error), "{description}");
        assert!(inbox.next().await.is_none());
        assert!(matches!(lab.slack.state(), ChatState::Stopped { .. }));
    }
}
