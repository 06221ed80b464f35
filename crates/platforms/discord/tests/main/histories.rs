//! What was said while nobody listened.

use std::time::Duration;

use hermetic_testkit::discord::{CHANNEL, Failure, HISTORY};

use crate::lab::{ALICE, Lab, listening_until, next, next_message, thread};

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
