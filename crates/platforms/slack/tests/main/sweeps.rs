//! What was said while nobody was connected.

use std::collections::HashSet;
use std::time::Duration;

use hermetic_chat::{Chat, SaveDurability};
use hermetic_testkit::slack::{BOT_USER, CHANNEL, Failure, WhileAway};
use hermetic_types::{Clock as _, SystemClock};
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
async fn of_many_threads_of_ours_only_those_with_news_are_asked_for() {
    let lab = Lab::new().await;
    let mut known = HashSet::new();
    let mut threads = Vec::new();
    {
        let mut inbox = lab.listen();
        for number in 0..40 {
            let text = format!("question {number}");
            threads.push(lab.server.mentions(CHANNEL, ALICE, &text));
            next_unknown(&mut inbox, &mut known).await;
        }
        lab.server.wait_until_acknowledged().await;
    }
    lab.server.wait_for_open_sockets(0).await;
    lab.server.while_away(WhileAway::Lost);
    // Far back, so that it is on no page that is read for another reason.
    lab.server.page_size(15);
    let reply = json!({ "text": "and now?", "thread_ts": threads[3] });
    lab.server.says_in(CHANNEL, BOB, reply);
    let asked = lab.server.tries("conversations.replies");
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let missed = next_unknown(&mut inbox, &mut known).await;
    assert_eq!(missed.text, "and now?");
    assert_eq!(missed.place, thread(CHANNEL, &threads[3]));
    // Slack lets a history be read fifty times a minute.
    assert_eq!(lab.server.tries("conversations.replies") - asked, 1);
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
        hermetic_chat::ChatEvent::Message(message) => message.update.clone(),
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
        .save("last_connected", &last, SaveDurability::OnDisk)
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
async fn a_clock_that_was_ahead_when_we_were_connected_hides_nothing() {
    let lab = Lab::new().await;
    lab.server.while_away(WhileAway::Lost);
    lab.server.says(BOB, "meanwhile");
    let tomorrow = SystemClock.now().plus(Duration::from_secs(24 * 3600));
    lab.state
        .save(
            "last_connected",
            &tomorrow.micros().to_string(),
            SaveDurability::OnDisk,
        )
        .await
        .unwrap();
    let mut inbox = lab.listen();
    assert_eq!(next_texts(&mut inbox, 1).await, ["meanwhile"]);
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

#[tokio::test]
async fn what_is_said_live_waits_for_what_was_missed_in_its_channel() {
    let lab = Lab::new().await;
    {
        let mut inbox = lab.listen();
        lab.server.says(ALICE, "before");
        assert_eq!(next_texts(&mut inbox, 1).await, ["before"]);
        lab.server.wait_until_acknowledged().await;
    }
    lab.server.wait_for_open_sockets(0).await;
    lab.server.while_away(WhileAway::Lost);
    lab.server.says(ALICE, "missed");
    // The history takes its time, and somebody writes meanwhile.
    for _ in 0..3 {
        lab.server
            .fail_next("conversations.history", Failure::BadGateway);
    }
    let again = lab.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let mut texts = Vec::new();
    tokio::select! {
        heard = next(&mut inbox) => panic!("nobody was to be heard: {heard:?}"),
        () = lab.server.wait_for_tries("conversations.history", 1) => lab.server.says(ALICE, "live"),
    };
    while !texts.contains(&"live".to_owned()) {
        texts.extend(next_texts(&mut inbox, 1).await);
    }
    texts.retain(|text| text != "before");
    assert_eq!(texts, ["missed", "live"]);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn channels_of_which_nothing_is_known_are_found_on_every_page() {
    let lab = Lab::new().await;
    lab.server.while_away(WhileAway::Lost);
    lab.server.page_size(1);
    let now = SystemClock.now().millis().unsigned_abs() * 1000;
    let before = (now - 60_000_000).to_string();
    lab.state
        .save("last_connected", &before, SaveDurability::OnDisk)
        .await
        .unwrap();
    for person in [ALICE, BOB, "U0CAROL"] {
        lab.server
            .says(person, &format!("a first word of {person}"));
    }
    let mut inbox = lab.listen();
    let mut heard = next_texts(&mut inbox, 3).await;
    heard.sort();
    let expected = [ALICE, BOB, "U0CAROL"].map(|person| format!("a first word of {person}"));
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(heard, expected);
}
