//! What was said while nobody listened.

use std::collections::BTreeSet;
use std::time::Duration;

use hermetic_testkit::discord::{CHANNEL, Failure, GUILD, HISTORY};
use serde_json::json;

use crate::lab::{ALICE, Lab, listening_until, message, next, next_message, thread};

/// Alice wrote once in private and once in the channel, and both are stored.
async fn known() -> Lab {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "one");
    next_message(&mut inbox).await;
    lab.server.says_in(CHANNEL, ALICE, "<@42> two");
    next_message(&mut inbox).await;
    lab.leave(inbox).await;
    lab.server.forget_session();
    lab
}

#[tokio::test]
async fn a_lost_session_is_made_up_for_from_the_histories() {
    let lab = known().await;
    let said = lab.server.says(ALICE, "missed in private");
    lab.server.says_in(CHANNEL, ALICE, "to nobody");
    let mentioned = lab
        .server
        .says_in(CHANNEL, ALICE, "<@42> missed in the channel");
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    let mut heard = [
        next_message(&mut inbox).await,
        next_message(&mut inbox).await,
    ];
    heard.sort_by_key(|heard| heard.update.as_str().to_owned());
    assert_eq!(heard[0].update.as_str(), said.to_string());
    assert_eq!(heard[1].text, "missed in the channel");
    assert_eq!(
        heard[1].place,
        thread(mentioned),
        "as if it had been heard live"
    );
    assert_eq!(lab.server.identifies(), 2);

    // What is found twice has one name.
    lab.server.repeats(lab.server.private_channel(ALICE), said);
    lab.server.says(ALICE, "now");
    assert_eq!(next_message(&mut inbox).await.text, "now");
}

#[tokio::test]
async fn what_others_say_to_each_other_hides_nothing_that_is_said_in_a_gap() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(CHANNEL, ALICE, "<@42> one");
    next_message(&mut inbox).await;
    for number in 0..150 {
        lab.server.says_in(CHANNEL, 8, &format!("chatter {number}"));
    }
    lab.server.says(ALICE, "all of it was heard");
    next_message(&mut inbox).await;
    lab.leave(inbox).await;
    lab.server.forget_session();

    // More than a page of it in the gap as well, and then the next mention moves the position.
    for number in 0..120 {
        lab.server.says_in(CHANNEL, 8, &format!("missed {number}"));
    }
    lab.server.says_in(CHANNEL, ALICE, "<@42> in the gap");
    let tries = lab.server.tries(HISTORY);
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    assert_eq!(next_message(&mut inbox).await.text, "in the gap");
    lab.server.says_in(CHANNEL, ALICE, "<@42> now");
    assert_eq!(next_message(&mut inbox).await.text, "now");
    assert_eq!(
        lab.server.tries(HISTORY) - tries,
        3,
        "two pages of the channel and one of Alice, and no chatter of before the gap"
    );
}

#[tokio::test]
async fn a_first_word_in_a_gap_is_found_in_channels_and_threads() {
    let lab = Lab::new().await;
    for (id, kind) in [(61, 0), (62, 0), (63, 15)] {
        lab.server.add_channel(json!({
            "id": id.to_string(), "type": kind, "guild_id": GUILD.to_string(), "name": "other",
            "last_message_id": null,
        }));
    }
    lab.server.add_channel(json!({
        "id": "71", "type": 11, "guild_id": GUILD.to_string(), "parent_id": "61",
        "owner_id": "8", "name": "a thread", "last_message_id": null,
    }));
    lab.server
        .says_in(62, ALICE, "<@42> before there was a bot");
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "connected");
    next_message(&mut inbox).await;
    lab.leave(inbox).await;
    lab.server.forget_session();

    lab.server.says_in(61, ALICE, "<@42> in a channel");
    lab.server.says_in(71, ALICE, "<@42> in a thread");
    lab.server.says_in(71, 8, "to nobody");
    lab.server
        .says_in(63, 8, "a forum has no messages of its own");
    let tries = lab.server.tries(HISTORY);
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    // Not stored at first: it is found again.
    let first = next(&mut inbox).await;
    drop(first.receipt);
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let text = next_message(&mut inbox).await.text;
        if !heard.contains(&text) {
            heard.push(text);
        }
    }
    heard.sort();
    assert_eq!(heard, ["in a channel", "in a thread"]);
    assert!(lab.server.tries(HISTORY) - tries >= 3);
    lab.leave(inbox).await;

    // Stored now, and the session goes on: nothing is read again.
    let tries = lab.server.tries(HISTORY);
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "now");
    assert_eq!(next_message(&mut inbox).await.text, "now");
    assert_eq!(lab.server.tries(HISTORY), tries);
}

#[tokio::test]
async fn what_a_process_did_not_store_of_the_histories_is_found_by_the_next() {
    let lab = known().await;
    lab.server.says(ALICE, "missed");
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    let first = next(&mut inbox).await;
    // Everything is handed out and the sweep is over, because something new comes.
    lab.server.says(8, "new");
    assert_eq!(message(next(&mut inbox).await.event).text, "new");
    // It ends as a killed one does: nothing is said to Discord or to the store.
    drop(inbox);
    drop(first.receipt);
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    // The other one may come twice, of the session and of the history, under one name.
    let mut heard = BTreeSet::new();
    while heard.len() < 2 {
        heard.insert(next_message(&mut inbox).await.text);
    }
    assert_eq!(heard, ["missed", "new"].map(str::to_owned).into());
}

#[tokio::test]
async fn what_was_found_and_not_stored_is_found_again() {
    let lab = known().await;
    lab.server.says(ALICE, "missed");
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    let first = next(&mut inbox).await;
    drop(first.receipt);
    assert_eq!(next_message(&mut inbox).await.text, "missed");
    assert_eq!(
        lab.server.identifies(),
        2,
        "the connection is as good as before"
    );
}

#[tokio::test]
async fn a_history_that_fails_is_read_again_and_one_that_is_gone_is_left() {
    let lab = known().await;
    lab.server.says(ALICE, "missed");
    lab.server.fail_next(HISTORY, Failure::BadGateway);
    lab.server.fail_next(
        HISTORY,
        Failure::TooMany {
            retry_after: 0.01,
            global: false,
        },
    );
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    assert_eq!(next_message(&mut inbox).await.text, "missed");
    lab.leave(inbox).await;

    lab.server.forget_session();
    for _ in 0..2 {
        let gone = Failure::Refuse {
            status: 404,
            code: 10003,
            message: "Unknown Channel",
        };
        lab.server.fail_next(HISTORY, gone);
    }
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(8, "go on");
    assert_eq!(next_message(&mut inbox).await.text, "go on");
}

#[tokio::test]
async fn no_more_is_read_than_the_bounds_say() {
    let lab = known().await;
    for number in 0..8 {
        lab.server.says(ALICE, &format!("missed {number}"));
    }
    let lab = lab.restarted(|config| {
        config.backfill.limit = 5;
        config.backfill.max_dispatches = 3;
    });
    let mut inbox = lab.listen();
    for number in 0..3 {
        assert_eq!(
            next_message(&mut inbox).await.text,
            format!("missed {number}")
        );
    }
    lab.server.says(ALICE, "now");
    assert_eq!(next_message(&mut inbox).await.text, "now");
    lab.leave(inbox).await;

    // Switched off, or everything is older than the window.
    let mut lab = lab;
    for switched_off in [true, false] {
        lab.server.forget_session();
        lab.server.says(ALICE, "missed");
        let tries = lab.server.tries(HISTORY);
        lab = lab.restarted(|config| match switched_off {
            true => config.backfill.enabled = false,
            false => config.backfill.window = Duration::ZERO,
        });
        let mut inbox = lab.listen();
        listening_until(&mut inbox, lab.server.wait_for_bot()).await;
        lab.server.says(8, "go on");
        assert_eq!(next_message(&mut inbox).await.text, "go on");
        lab.leave(inbox).await;
        assert_eq!(lab.server.tries(HISTORY) == tries, switched_off);
    }
}
