//! No room on the disk for what the adapter remembers.

use std::sync::Arc;

use hermetic_chat::{AdapterState, Chat};
use hermetic_discord::DiscordAdapter;
use hermetic_testkit::discord::DiscordServer;
use hermetic_testkit::full_disk::FullDisk;
use tokio_util::sync::CancellationToken;

use crate::lab::{ALICE, config, listening_until, next_message};

#[tokio::test]
async fn a_message_whose_position_cannot_be_kept_comes_when_there_is_room() {
    let (server, disk) = (DiscordServer::start().await.unwrap(), Arc::default());
    let state: Arc<dyn AdapterState> = Arc::<FullDisk>::clone(&disk);
    let discord = DiscordAdapter::new(config(&server.url()), state).unwrap();
    let mut inbox = discord.receive(CancellationToken::new());
    listening_until(&mut inbox, server.wait_for_bot()).await;
    disk.fill();
    server.says(ALICE, "hello");
    listening_until(&mut inbox, disk.wait_for_refusals(3)).await;
    disk.make_room();
    server.says(ALICE, "and again");
    for text in ["hello", "and again"] {
        assert_eq!(next_message(&mut inbox).await.text, text);
    }
}
