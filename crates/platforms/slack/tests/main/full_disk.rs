//! No room on the disk for what the adapter remembers.

use std::sync::Arc;

use futures::StreamExt;
use hermetic_chat::{AdapterState, Chat};
use hermetic_slack::SlackAdapter;
use hermetic_testkit::full_disk::FullDisk;
use hermetic_testkit::slack::SlackServer;
use tokio_util::sync::CancellationToken;

use crate::lab::{ALICE, config, next_message};

#[tokio::test]
async fn a_message_whose_position_cannot_be_kept_is_not_acknowledged() {
    let (server, disk) = (SlackServer::start().await.unwrap(), Arc::default());
    let state: Arc<dyn AdapterState> = Arc::<FullDisk>::clone(&disk);
    let slack = SlackAdapter::new(config(&server.url()), state).unwrap();
    let mut inbox = slack.receive(CancellationToken::new());
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = server.wait_for_open_sockets(1) => {}
    }
    disk.fill();
    server.says(ALICE, "hello");
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = disk.wait_for_refusals(1) => {}
    }
    assert_eq!(server.unacknowledged(), 1);
    disk.make_room();
    // Slack sends again what was not acknowledged.
    server.cut_sockets();
    assert_eq!(next_message(&mut inbox).await.text, "hello");
    server.says(ALICE, "and again");
    assert_eq!(next_message(&mut inbox).await.text, "and again");
    server.wait_until_acknowledged().await;
}
