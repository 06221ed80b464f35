//! Killed at the worst moment: nothing is lost, nothing is silently done twice.

use std::fs;
use std::time::Instant;

use hermetic_testkit::model::Reply;
use hermetic_testkit::telegram::Failure;

use super::answers::stalls;
use super::clerk::Clerk;
use super::lab::{ALICE, Lab, Shared, calls_terminal};

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_model_thinks_the_message_is_answered_after_the_restart() {
    let script = [stalls(), Reply::streams(&["here I am"])];
    let test = "killed_while_the_model_thinks_the_message_is_answered_after_the_restart";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "are you there?");
    lab.model_asked(1).await;
    lab.kill();
    lab.restart();
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(
        reply.starts_with("[The gateway was restarted") && reply.ends_with("here I am"),
        "{reply}"
    );
    let asked = lab.asked().remove(1);
    assert_eq!(asked.matches("are you there?").count(), 1, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_during_a_tool_the_model_is_told_and_nothing_runs_twice() {
    let shared = Shared::new();
    let command = "echo ran >> /shared/count; echo at it > /shared/pipe; sleep 1000";
    let script = [
        calls_terminal(command),
        Reply::streams(&["I looked first."]),
    ];
    let test = "killed_during_a_tool_the_model_is_told_and_nothing_runs_twice";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(mut lab) = Lab::start_with(test, script, &shared.config(), access).await else {
        return;
    };
    lab.telegram.says(ALICE, "do it");
    assert_eq!(shared.heard().await, "at it\n");
    lab.kill();
    lab.restart();
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(
        reply.contains("was restarted") && reply.ends_with("I looked first."),
        "{reply}"
    );
    let asked = lab.asked().remove(1);
    assert!(asked.contains("it may or may not have happened"), "{asked}");
    assert_eq!(fs::read_to_string(shared.path("count")).unwrap(), "ran\n");
    lab.destroy(ALICE).await;
    assert_eq!(lab.sandboxes(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cut_by_a_kill_is_reported_and_not_repeated() {
    let shared = Shared::new();
    let test = "a_command_cut_by_a_kill_is_reported_and_not_repeated";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    lab.telegram.says(
        ALICE,
        "/sh echo ran >> /shared/count; echo at it > /shared/pipe; sleep 1000",
    );
    assert_eq!(shared.heard().await, "at it\n");
    lab.kill();
    lab.restart();
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(reply.contains("may or may not have happened"), "{reply}");
    assert_eq!(fs::read_to_string(shared.path("count")).unwrap(), "ran\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_sending_the_reply_comes_again_and_is_marked() {
    let script = [Reply::streams(&["the answer"])];
    let test = "killed_while_sending_the_reply_comes_again_and_is_marked";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.fail_next("sendMessage", Failure::Hang);
    lab.telegram.says(ALICE, "hello");
    lab.telegram.wait_for_tries("sendMessage", 1).await;
    lab.kill();
    lab.restart();
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(
        reply.contains("Possible duplicate") && reply.ends_with("the answer"),
        "{reply}"
    );
    assert_eq!(lab.model.received().len(), 1, "the model was asked again");
    // Nothing of it is left to do.
    lab.terminate();
    lab.restart();
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    assert_eq!(lab.sent_to(ALICE), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_brings_the_gateway_down_again_and_again_is_given_up() {
    let script = [stalls(), stalls(), stalls()];
    let test = "a_message_that_brings_the_gateway_down_again_and_again_is_given_up";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "a bad one");
    for begun in 1..=3 {
        lab.model_asked(begun).await;
        lab.kill();
        lab.restart();
    }
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(reply.contains("given it up"), "{reply}");
    assert_eq!(lab.model.received().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_stop_a_turn_says_that_it_was_cut() {
    let Some(mut lab) = Lab::start("asked_to_stop_a_turn_says_that_it_was_cut", [stalls()]).await
    else {
        return;
    };
    lab.telegram.says(ALICE, "think hard");
    lab.model_asked(1).await;
    let said = lab.terminate();
    assert!(said.contains("turns were interrupted"), "{said}");
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(reply.contains("being stopped"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_every_message_is_answered_and_nothing_runs_twice() {
    const ROUNDS: i64 = 10;
    let shared = Shared::new();
    let test = "killed_at_any_moment_every_message_is_answered_and_nothing_runs_twice";
    let access = "TELEGRAM_ALLOWED_USERS=100,101,102,103,104,105,106,107,108,109,110";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    let undisturbed = Instant::now();
    lab.ask(110, "/sh echo done").await;
    let whole = undisturbed.elapsed();
    for user in 100..100 + ROUNDS {
        lab.telegram
            .says(user, &format!("/sh echo {user} >> /shared/log; echo done"));
        // Not a wait for anything: the spread of moments at which it dies.
        tokio::time::sleep(whole * u32::try_from(user - 100).unwrap() / 9).await;
        lab.kill();
        lab.restart();
    }
    for user in 100..100 + ROUNDS {
        let first = lab.replies(user, 1).await.remove(0);
        let known = ["done", "may or may not have happened"];
        assert!(known.iter().any(|text| first.contains(text)), "{first}");
    }
    let log = fs::read_to_string(shared.path("log")).unwrap();
    let mut ran: Vec<_> = log.lines().collect();
    ran.sort_unstable();
    let before = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), before, "something ran twice: {log}");
    // A reply beyond the first says that it may be one.
    for user in 100..100 + ROUNDS {
        for more in &lab.replies(user, 1).await[1..] {
            assert!(more.contains("Possible duplicate"), "{more}");
        }
    }
}

/// From the message to the reply: let in, written down, the model asked, its tool run, answered, sent.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_of_a_turn_nothing_is_lost_doubled_or_left() {
    const ROUNDS: i64 = 16;
    let shared = Shared::new();
    let test = "killed_at_any_moment_of_a_turn_nothing_is_lost_doubled_or_left";
    let access = "TELEGRAM_ALLOW_ALL_USERS=true";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    let clerk = Clerk::start().await;
    lab.terminate();
    clerk.takes_the_place_of_the_model(&lab);
    lab.restart();
    let users = 100..100 + ROUNDS;
    let undisturbed = Instant::now();
    lab.ask(99, "echo 99 >> /shared/log; echo ran it").await;
    let whole = undisturbed.elapsed();
    for user in users.clone() {
        lab.telegram
            .says(user, &format!("echo {user} >> /shared/log; echo ran it"));
        // Not a wait for anything: the spread of moments at which it dies.
        tokio::time::sleep(whole * u32::try_from(user - 100).unwrap() / 15).await;
        lab.kill();
        lab.restart();
        let replies = lab.replies(user, 1).await;
        assert!(replies[0].contains("It is "), "{replies:?}");
    }
    let log = fs::read_to_string(shared.path("log")).unwrap();
    for user in users.clone() {
        let ran = log
            .lines()
            .filter(|line| **line == user.to_string())
            .count();
        let replies = lab.replies(user, 1).await;
        assert!(ran <= 1, "it ran {ran} times: {replies:?}");
        if replies[0].contains("It is done") {
            assert_eq!(ran, 1, "{replies:?}");
        }
        for more in &replies[1..] {
            assert!(more.contains("Possible duplicate"), "{more}");
        }
    }
    // Nothing stays either, whenever it dies while it tidies up.
    for user in users.clone().step_by(4) {
        lab.ask(user, "/destroy").await;
        lab.telegram.says(user, "/destroy yes");
        lab.kill();
        lab.restart();
    }
    for user in users.chain([99]) {
        lab.destroy(user).await;
    }
    assert_eq!(lab.sandboxes(), [""; 0]);
}
