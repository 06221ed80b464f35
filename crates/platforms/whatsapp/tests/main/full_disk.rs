//! No room on the disk for what the adapter remembers.

use std::sync::Arc;

use futures::StreamExt;
use hermetic_testkit::full_disk::FullDisk;

use crate::lab::{ALICE, Lab, next_message};

#[tokio::test]
async fn a_message_of_somebody_who_cannot_be_kept_is_not_taken() {
    let disk = Arc::<FullDisk>::default();
    let state = Arc::clone(&disk);
    let lab = Lab::with(|config| {
        config.listed_numbers =
            [hermetic_whatsapp::PhoneNumber::read("16505551234").unwrap()].into();
        config.state = state;
    })
    .await;
    let mut inbox = lab.listen();
    disk.fill();
    // The number is on a list, so whose it is has to be remembered.
    lab.server.says(ALICE, "hello");
    tokio::select! {
        heard = inbox.next() => panic!("nobody was to be heard: {heard:?}"),
        () = disk.wait_for_refusals(2) => {}
    }
    assert_eq!(lab.server.taken(), 0);
    disk.make_room();
    assert_eq!(next_message(&mut inbox).await.text, "hello");
    lab.server.says(ALICE, "and again");
    assert_eq!(next_message(&mut inbox).await.text, "and again");
}
