//! The store's disk taken away before each write that one turn makes, in the order they come: by a kill,
//! by a power cut, by having no room.
//!
//! What a message has been through is rows, so between two commits there is one state that a start can
//! find.

use std::fs;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::clerk::Clerk;
use super::faulty_disk::FaultyDisk;
use super::lab::{Lab, Shared};

/// More than a turn with a tool makes, and those of the next message, so that the sweep covers all.
const COMMITS: i64 = 18;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Makes whoever is killed late enough write again.
const NUDGER: i64 = 98;

/// What becomes of the store's files when the gateway is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// All that was written is there.
    Written,
    /// What was not synced is lost.
    Synced,
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_each_write_of_a_turn_nothing_is_lost_or_doubled() {
    let test = "killed_before_each_write_of_a_turn_nothing_is_lost_or_doubled";
    end_before_each_write(test, Files::Written).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_power_cut_before_each_write_of_a_turn_nothing_is_lost_or_doubled() {
    let test = "in_a_power_cut_before_each_write_of_a_turn_nothing_is_lost_or_doubled";
    end_before_each_write(test, Files::Synced).await;
}

async fn end_before_each_write(test: &str, files: Files) {
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let shared = Shared::new();
    let access = "TELEGRAM_ALLOW_ALL_USERS=true";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    let clerk = Clerk::start().await;
    lab.terminate();
    clerk.takes_the_place_of_the_model(&lab);
    for commit in 1..=COMMITS {
        let user = 100 + commit;
        disk.start(&mut lab);
        disk.kills_before_commit(commit);
        lab.telegram
            .says(user, &format!("echo {user} >> /shared/log; echo ran it"));
        let killed = timeout(PATIENCE, async {
            while !lab.has_ended() {
                if lab.sent_to(user) > 0 {
                    lab.telegram.says(NUDGER, "/help");
                }
                sleep(LOOK_AGAIN).await;
            }
        });
        assert!(killed.await.is_ok(), "never killed before commit {commit}");
        if files == Files::Synced {
            disk.lose_what_was_not_synced(&lab);
        }
        lab.restart();
        let replies = lab.replies(user, 1).await;
        assert!(replies[0].contains("It is "), "{commit}: {replies:?}");
        lab.terminate();
        let ran = ran(&shared, user);
        let replies = lab.replies(user, 1).await;
        assert!(ran <= 1, "{commit}: it ran {ran} times: {replies:?}");
        if replies[0].contains("It is done") {
            assert_eq!(ran, 1, "{commit}: {replies:?}");
        }
        for more in &replies[1..] {
            assert!(more.contains("Possible duplicate"), "{commit}: {more}");
        }
    }
    lab.restart();
    for user in 101..=100 + COMMITS {
        lab.destroy(user).await;
    }
    assert_eq!(lab.sandboxes(), [""; 0]);
}

/// Nobody is killed: what could not be written is written when there is room, and the turn goes on.
#[tokio::test(flavor = "multi_thread")]
async fn with_no_room_for_one_write_of_a_turn_it_is_answered_once() {
    let test = "with_no_room_for_one_write_of_a_turn_it_is_answered_once";
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let shared = Shared::new();
    let access = "TELEGRAM_ALLOW_ALL_USERS=true";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    let clerk = Clerk::start().await;
    lab.terminate();
    clerk.takes_the_place_of_the_model(&lab);
    disk.start(&mut lab);
    for commit in 1..=COMMITS {
        let user = 100 + commit;
        disk.fails_commit(commit);
        lab.telegram
            .says(user, &format!("echo {user} >> /shared/log; echo ran it"));
        let replies = lab.replies(user, 1).await;
        disk.is_well();
        assert!(replies[0].contains("It is "), "{commit}: {replies:?}");
        assert!(ran(&shared, user) <= 1, "{commit}: {replies:?}");
        if replies[0].contains("It is done") {
            assert_eq!(ran(&shared, user), 1, "{commit}: {replies:?}");
        }
        for more in &replies[1..] {
            assert!(more.contains("Possible duplicate"), "{commit}: {more}");
        }
    }
    // Nothing is left to be told twice.
    lab.terminate();
    lab.restart();
    assert!(lab.ask(NUDGER, "/help").await.contains("/reset"));
    for user in 101..=100 + COMMITS {
        assert_eq!(lab.sent_to(user), 1, "{user}");
    }
}

fn ran(shared: &Shared, user: i64) -> usize {
    let log = fs::read_to_string(shared.path("log")).unwrap();
    let own = user.to_string();
    log.lines().filter(|line| **line == own).count()
}
