//! What was said while nobody was connected.

use std::collections::HashSet;

use hermetic_chat::{Chat, Saving};
use hermetic_testkit::slack::{BOT_USER, CHANNEL, Failure, WhileAway};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::lab::{ALICE, ALICES_CHANNEL, Lab, next, next_texts, next_unknown, thread};

const BOB: &str = "U0BOB";

#[tokio::test]
async fn what_was_said_in_a_gap_is_found_in_the_histories_in_order_and_once() {
    let lab = Lab::new().await;
    lab.server.page_size(2);
    let mut known = HashSet::new();
    let before = {
        let mut inbox = lab.listen();
        lab.server.says(ALICE, "before");
        let begun = lab.server.mentions(CHANNEL, ALICE, "a thread of ours");
        let old = lab
            .server
            .says_in(CHANNEL, BOB, json!({ "text": "a thread of others" }));
        next_unknown(&mut inbox, &mut known).await;
        next_unknown(&mut inbox, &mut known).await;
        lab.server.wait_until_acknowledged().await;
        (begun, old)
    };
    lab.server.wait_for_open_sockets(0).await;
    lab.server.while_away(WhileAway::Lost);
    let named = |text: &str| format!("<@{BOT_USER}> {text}");
    for number in 1..=5 {
        lab.server.says(ALICE, &format!("missed {number}"));
    }
    lab.server.says_in(
        CHANNEL,
        BOB,
        json!({ "text": "in ours", "thread_ts": before.0 }),
    );
    lab.server.says_in(
        CHANNEL,
        BOB,
        json!({ "text": named("in theirs"), "thread_ts": before.1 }),
    );
    let new = lab
        .server
        .says_in(CHANNEL, BOB, json!({ "text": "not for us" }));
    lab.server.says_in(
        CHANNEL,
        BOB,
        json!({ "text": named("in a new one"), "thread_ts": new }),
    );

    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let mut heard = Vec::new();
    for _ in 0..8 {
        heard.push(next_unknown(&mut inbox, &mut known).await);
    }
    let private = heard
        .iter()
        .filter(|message| message.place.chat.as_str() == ALICES_CHANNEL);
    let private: Vec<_> = private.map(|message| message.text.as_str()).collect();
    assert_eq!(
        private,
        ["missed 1", "missed 2", "missed 3", "missed 4", "missed 5"]
    );
    let channel = heard
        .iter()
        .filter(|message| message.place.chat.as_str() == CHANNEL);
    let channel: Vec<_> = channel
        .map(|message| (message.text.as_str(), &message.place))
        .collect();
    let places = [
        thread(CHANNEL, &before.0),
        thread(CHANNEL, &before.1),
        thread(CHANNEL, &new),
    ];
    assert_eq!(
        channel,
        [
            ("in ours", &places[0]),
            ("in theirs", &places[1]),
            ("in a new one", &places[2])
        ]
    );
    // Live again.
    lab.server.says(ALICE, "after");
    let after = next_unknown(&mut inbox, &mut known).await;
    assert_eq!(after.text, "after");
}

#[tokio::test]
async fn a_swept_message_has_the_name_of_the_live_one() {
    let lab = Lab::new().await;
    let mut known = HashSet::new();
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    next_unknown(&mut inbox, &mut known).await;
    // Handed out, not stored, and then the process ends.
    lab.server.says(ALICE, "unlucky");
    let live = next(&mut inbox).await;
    let update = match &live.event {
        hermetic_chat::Event::Message(message) => message.update.clone(),
        other => panic!("{other:?}"),
    };
    drop(inbox);
    lab.server.wait_for_open_sockets(0).await;
    lab.server.while_away(WhileAway::Lost);
    drop(live);
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let swept = next_unknown(&mut inbox, &mut known).await;
    assert_eq!((swept.text.as_str(), swept.update), ("unlucky", update));
}

#[tokio::test]
async fn a_channel_of_which_nothing_is_known_is_read_since_we_were_last_connected() {
    let lab = Lab::new().await;
    lab.server.while_away(WhileAway::Lost);
    lab.server.says(BOB, "long ago");
    let last = lab
        .server
        .writes("D0BOB", BOB, json!({ "text": "just before" }));
    let last = last["ts"].as_str().unwrap().replace('.', "");
    lab.state
        .save("last_connected", &last, Saving::OnDisk)
        .await
        .unwrap();
    lab.server.says(ALICE, "a first word");
    let mut inbox = lab.listen();
    assert_eq!(next_texts(&mut inbox, 1).await, ["a first word"]);
    // What Bob said before that is not answered any more.
    lab.server.says(BOB, "now");
    assert_eq!(next_texts(&mut inbox, 1).await, ["now"]);
}

#[tokio::test]
async fn a_sweep_waits_where_slack_asks_for_it_and_skips_what_it_may_not_read() {
    let lab = Lab::new().await;
    let mut known = HashSet::new();
    {
        let mut inbox = lab.listen();
        lab.server.says(ALICE, "before");
        lab.server.mentions(CHANNEL, ALICE, "before");
        next_unknown(&mut inbox, &mut known).await;
        next_unknown(&mut inbox, &mut known).await;
        lab.server.wait_until_acknowledged().await;
    }
    lab.server.wait_for_open_sockets(0).await;
    lab.server.while_away(WhileAway::Lost);
    lab.server.says(ALICE, "missed");
    // Private chats come first; the channel was left meanwhile.
    for failure in [
        Failure::Throttle(0),
        Failure::BadGateway,
        Failure::Drop,
        Failure::NotYet,
        Failure::NotYet,
        Failure::Refuse("not_in_channel"),
    ] {
        lab.server.fail_next("conversations.history", failure);
    }
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    assert_eq!(next_unknown(&mut inbox, &mut known).await.text, "missed");
    lab.server.says(ALICE, "after");
    assert_eq!(next_unknown(&mut inbox, &mut known).await.text, "after");
}
