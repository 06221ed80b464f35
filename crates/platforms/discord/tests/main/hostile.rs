//! Bytes that nobody should send.

use hermetic_testkit::discord::CHANNEL;
use serde_json::{Value, json};

use crate::lab::{ALICE, Lab, listening_until, next_message};

#[tokio::test]
async fn malformed_events_hold_up_nothing() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    for text in [
        "",
        "null",
        "{",
        "[]",
        "{\"op\":\"x\"}",
        "{\"op\":0}",
        "{\"op\":99,\"d\":{}}",
    ] {
        lab.server.garbage(text);
    }
    lab.server.garbage(&format!(
        "{{\"op\":0,\"d\":{}1{}}}",
        "[".repeat(500),
        "]".repeat(500)
    ));
    for data in [
        Value::Null,
        json!([]),
        json!("text"),
        json!({ "id": "1" }),
        json!({ "id": "-1", "channel_id": "1" }),
        json!({ "id": "99999999999999999999", "channel_id": "1" }),
        json!({ "id": "1", "channel_id": "2", "content": 5 }),
        json!({ "id": "1", "channel_id": "2", "author": "alice", "content": "x" }),
        json!({ "id": "1", "channel_id": "2", "mentions": [1], "content": "x" }),
    ] {
        for kind in [
            "MESSAGE_CREATE",
            "INTERACTION_CREATE",
            "GUILD_CREATE",
            "CHANNEL_UPDATE",
        ] {
            lab.server.dispatch(kind, data.clone());
        }
    }
    lab.server.dispatch(
        "GUILD_CREATE",
        json!({ "channels": [1, null, { "id": "5" }] }),
    );
    lab.server.says(ALICE, "after all that");
    assert_eq!(next_message(&mut inbox).await.text, "after all that");
    assert_eq!(
        lab.server.resumes(),
        [0; 0],
        "nothing of it cost the connection"
    );
}

#[tokio::test]
async fn a_megabyte_of_text_and_strange_names_are_taken() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let private = lab.server.private_channel(ALICE);
    let long = "a\u{202e}b\u{200b} ".repeat(100_000);
    let name = "\u{202e}\u{200b}evil".repeat(1000);
    let fields = json!({
        "content": long,
        "author": { "id": "7", "username": "x", "global_name": name },
    });
    lab.server.says_with(private, ALICE, fields);
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, long.trim());
    assert_eq!(heard.sender.id.as_str(), "7");
    assert!(heard.sender.display.chars().count() <= 128);
}

#[tokio::test]
async fn events_twice_and_out_of_order_are_one_each() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let private = lab.server.private_channel(ALICE);
    let one = lab.server.says(ALICE, "one");
    assert_eq!(next_message(&mut inbox).await.text, "one");
    let two = lab.server.says(ALICE, "two");
    assert_eq!(next_message(&mut inbox).await.text, "two");
    for message in [two, one, one, two] {
        lab.server.repeats(private, message);
    }
    lab.server.says(ALICE, "three");
    assert_eq!(next_message(&mut inbox).await.text, "three");
}

#[tokio::test]
async fn ten_thousand_channels_are_described_without_harm() {
    let lab = Lab::new().await;
    let channel = |id: u64| json!({ "id": id.to_string(), "type": 0, "name": "x".repeat(90) });
    (1000..11_000).for_each(|id| lab.server.add_channel(channel(id)));
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    assert_eq!(next_message(&mut inbox).await.text, "hello");
}

#[tokio::test]
async fn a_channel_of_ten_thousand_is_a_channel_and_nobody_in_it_is_mistaken() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let member = |id: u64| json!({ "user": { "id": id.to_string(), "username": "member" } });
    let crowd: Vec<_> = (20_000..30_000).map(member).collect();
    let guild = json!({ "id": "900", "member_count": 10_000, "members": crowd });
    lab.server.dispatch("GUILD_CREATE", guild);
    for speaker in 20_000..20_500 {
        lab.server
            .says_in(CHANNEL, speaker, "to nobody in particular");
    }
    lab.server.says_in(CHANNEL, ALICE, "<@42> is it full?");
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "is it full?");
    assert_eq!(heard.sender.id.as_str(), ALICE.to_string());
    assert_eq!(lab.server.resumes(), [0; 0], "the socket held");
}
