//! Bytes that nobody honest sends.

use hermetic_testkit::slack::{CHANNEL, TEAM};
use serde_json::{Value, json};

use crate::lab::{ALICE, ALICES_CHANNEL, Lab, next_message, next_texts};

#[tokio::test]
async fn a_megabyte_of_text_and_names_that_mislead_are_heard_and_hold_up_nothing() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let megabyte = "<&".repeat(512 << 10);
    lab.server.says(ALICE, &megabyte);
    let profile = json!({ "display_name": "\u{202e}nimda\u{200b}", "real_name": 7 });
    lab.server.says_in(
        ALICES_CHANNEL,
        ALICE,
        json!({ "text": "hello", "user_profile": profile }),
    );
    assert_eq!(next_message(&mut inbox).await.text.len(), megabyte.len());
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.sender.id.as_str(), ALICE);
    assert_eq!(heard.sender.display, "\u{202e}nimda\u{200b}");
}

#[tokio::test]
async fn fields_of_any_shape_cost_at_most_their_event() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    assert_eq!(next_texts(&mut inbox, 1).await, ["before"]);
    let honest = json!({
        "type": "message", "channel": ALICES_CHANNEL, "user": ALICE, "text": "x",
        "ts": "1700000000.000100", "thread_ts": "1700000000.000050", "team": TEAM,
        "files": [{ "id": "F1" }], "attachments": [{ "is_share": true, "text": "y" }],
        "bot_id": "B1", "subtype": "file_share", "user_profile": {}, "parent_user_id": "U1",
    });
    let odd = [
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!([[]]),
        json!("\u{0}"),
        json!("x".repeat(300)),
        json!(-1),
    ];
    for field in honest.as_object().unwrap().keys() {
        for value in &odd {
            let mut event = honest.clone();
            event[field] = value.clone();
            // Kept out by its author, so that whatever is heard of it is not counted below.
            event["user"] = json!("U0BOT");
            lab.server.event(event);
        }
    }
    for (kind, payload) in [
        ("interactive", honest.clone()),
        ("slash_commands", honest.clone()),
        ("slash_commands", json!({ "team_id": TEAM, "command": 7 })),
        (
            "interactive",
            json!({ "type": "block_actions", "team": { "id": TEAM } }),
        ),
        ("unheard_of", json!({})),
        ("events_api", Value::Null),
        ("events_api", json!([])),
    ] {
        lab.server.envelope(kind, payload);
    }
    for text in [
        "",
        "null",
        "[",
        "{\"type\":",
        "\"hello\"",
        "{\"envelope_id\": 7, \"type\": 8}",
        "{\"type\":\"hello\"}",
    ] {
        lab.server.send_text(text);
    }
    let mut deep = String::new();
    for _ in 0..10_000 {
        deep.push('[');
    }
    lab.server.send_text(&deep);
    lab.server.says(ALICE, "after");
    assert_eq!(next_texts(&mut inbox, 1).await, ["after"]);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn events_out_of_order_and_many_times_are_each_heard_once() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let event = |number: u32| {
        json!({
            "type": "message", "channel": ALICES_CHANNEL, "user": ALICE,
            "text": format!("event {number}"), "ts": format!("1700000000.{number:06}"),
        })
    };
    for number in [3, 1, 2, 3, 3, 1] {
        lab.server.event(event(number));
    }
    for _ in 0..100 {
        lab.server.event(event(2));
    }
    lab.server.event(event(4));
    let heard = next_texts(&mut inbox, 4).await;
    assert_eq!(heard, ["event 3", "event 1", "event 2", "event 4"]);
}

#[tokio::test]
async fn ten_thousand_people_who_talk_to_each_other_are_not_for_us() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    assert_eq!(next_texts(&mut inbox, 1).await, ["before"]);
    for number in 0..2000 {
        lab.server.event(json!({
            "type": "message", "channel": CHANNEL, "user": format!("U{number}"),
            "text": "chatter", "ts": format!("1700000000.{number:06}"),
        }));
    }
    lab.server.says(ALICE, "after");
    assert_eq!(next_texts(&mut inbox, 1).await, ["after"]);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn a_channel_of_ten_thousand_is_a_channel_and_nobody_in_it_is_asked_about() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    assert_eq!(next_texts(&mut inbox, 1).await, ["before"]);
    let asked_before = lab.server.tries("users.info");
    for number in 0..10_000 {
        lab.server.event(json!({
            "type": "member_joined_channel", "channel": CHANNEL, "user": format!("UCROWD{number}"),
            "event_ts": format!("1700000000.{number:06}"),
        }));
    }
    for number in 0..500 {
        let speaker = format!("UCROWD{number}");
        lab.server.says_in(
            CHANNEL,
            &speaker,
            json!({ "text": "to nobody in particular" }),
        );
    }
    lab.server.mentions(CHANNEL, ALICE, "is it full?");
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "is it full?");
    assert_eq!(heard.sender.id.as_str(), ALICE);
    // Whoever writes for others costs no request: at most Alice was asked about.
    let asked = lab.server.tries("users.info") - asked_before;
    assert!(asked <= 1, "{asked} people were asked about");
    assert_eq!(lab.server.calls("conversations.members").len(), 0);
    lab.server.wait_until_acknowledged().await;
}
