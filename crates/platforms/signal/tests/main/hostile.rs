//! Bytes that nobody would send by mistake.

use hermetic_signal::parser::read_event;
use hermetic_testkit::signal_server::{ALICE, NUMBER, Person, in_group};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lab::{GROUP, Lab, next_message};

#[tokio::test]
async fn one_bad_event_holds_up_no_other() {
    let lab = Lab::new().await;
    for text in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{\"envelope\":[]}",
        "\u{0}",
    ] {
        lab.server.garbage(text);
    }
    let from = |content: Value| {
        let mut envelope = json!({ "sourceUuid": ALICE.uuid });
        envelope
            .as_object_mut()
            .unwrap()
            .extend(content.as_object().unwrap().clone());
        json!({ "account": NUMBER, "envelope": envelope })
    };
    for bad in [
        json!({ "account": 7 }),
        json!({ "account": NUMBER }),
        json!({ "account": "+4915100000009", "envelope": { "sourceUuid": ALICE.uuid,
            "dataMessage": { "timestamp": 1, "message": "to another account" } } }),
        json!({ "account": NUMBER, "exception": { "message": "x", "type": "UntrustedIdentityException" },
            "envelope": { "sourceUuid": ALICE.uuid, "timestamp": 1 } }),
        json!({ "account": NUMBER, "envelope": { "sourceUuid": "not an id", "sourceNumber": "nor a number",
            "dataMessage": { "timestamp": 1, "message": "from nobody" } } }),
        from(json!({ "dataMessage": null })),
        from(json!({ "dataMessage": [] })),
        from(json!({ "dataMessage": { "timestamp": -1, "message": "x" } })),
        from(json!({ "dataMessage": { "timestamp": 1 } })),
        from(json!({ "dataMessage": { "timestamp": 1, "message": 5 } })),
        from(
            json!({ "dataMessage": { "timestamp": 1, "groupInfo": { "groupId": "" }, "message": "x" } }),
        ),
        from(json!({ "dataMessage": { "timestamp": 1, "message": "x", "storyContext": {} } })),
        from(json!({ "storyMessage": { "textAttachment": { "text": "/sh id" } } })),
        from(json!({ "editMessage": { "dataMessage": { "timestamp": 1, "message": "/sh id" } } })),
        from(json!({ "typingMessage": { "action": "STARTED" } })),
        from(json!({ "receiptMessage": { "isRead": true } })),
        from(
            json!({ "syncMessage": { "sentMessage": { "timestamp": 1, "message": "as if ours",
            "destinationNumber": NUMBER } } }),
        ),
        from(json!({ "syncMessage": { "readMessages": [] } })),
        from(json!({ "callMessage": {} })),
    ] {
        lab.server.event(&bad);
    }
    let mut inbox = lab.listen();
    lab.server.says_with(
        ALICE,
        json!({ "message": "odd", "quote": { "x": 1 }, "attachments": [7, {}] }),
    );
    assert_eq!(next_message(&mut inbox).await.text, "odd");
    lab.server.says(ALICE, "and on");
    assert_eq!(next_message(&mut inbox).await.text, "and on");
}

#[tokio::test]
async fn a_megabyte_and_strange_names_pass_through() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let long = "ä".repeat(500_000);
    lab.server.says(ALICE, &long);
    let strange = Person {
        name: "\u{202e}drowssap\u{200b}\u{2066}",
        ..ALICE
    };
    lab.server.says(strange, "hello");
    assert_eq!(next_message(&mut inbox).await.text.len(), 1_000_000);
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.sender.id.as_str()),
        ("hello", ALICE.uuid)
    );
    // Longer than anything Signal carries: it costs only itself.
    lab.server.says(ALICE, &"x".repeat(5 << 20));
    lab.server.says_with(ALICE, in_group(GROUP, "next"));
    assert_eq!(next_message(&mut inbox).await.text, "next");
}

#[tokio::test]
async fn events_out_of_order_and_twice_are_each_heard_once() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let event = |timestamp: u64| {
        json!({ "account": NUMBER, "envelope": { "sourceUuid": ALICE.uuid, "sourceNumber": ALICE.number,
            "dataMessage": { "timestamp": timestamp, "message": timestamp.to_string() } } })
    };
    for timestamp in [30, 10, 20] {
        lab.server.event(&event(timestamp));
        assert_eq!(next_message(&mut inbox).await.text, timestamp.to_string());
    }
    for timestamp in [10, 30, 20, 40] {
        lab.server.event(&event(timestamp));
    }
    assert_eq!(next_message(&mut inbox).await.text, "40");
}

proptest! {
    #[test]
    fn no_placeholder_or_position_breaks_a_text(
        text in "[a-z \u{fffc}😀é]{0,20}",
        mentions in proptest::collection::vec((0usize..40, 0usize..40, any::<bool>()), 0..6),
    ) {
        let mentions: Vec<_> = mentions.into_iter().map(|(start, length, ours)| {
            let number = if ours { NUMBER } else { "+4915100000007" };
            json!({ "number": number, "start": start, "length": length })
        }).collect();
        let event = json!({ "account": NUMBER, "envelope": { "sourceUuid": ALICE.uuid,
            "dataMessage": { "timestamp": 1, "message": text, "mentions": mentions } } });
        let words: String = text.chars().filter(|c| c.is_alphabetic() && *c != '\u{fffc}').collect();
        let read = read_event(&event, NUMBER).map(|read| read.text).unwrap_or_default();
        let kept: String = read.chars().filter(|c| c.is_alphabetic()).collect();
        prop_assert_eq!(kept, words, "a sender's words are all there");
    }
}
