//! People think while the gateway comes and goes, by force and in good order.

use hermetic_testkit::model::Reply;

use super::approvals::{Deed, lab, name, notices, press};
use super::lab::{ALICE, Lab, calls_terminal};

#[tokio::test(flavor = "multi_thread")]
async fn stopped_while_it_waits_the_question_stands_and_the_old_button_counts() {
    let deed = Deed::new();
    let test = "stopped_while_it_waits_the_question_stands_and_the_old_button_counts";
    let Some(mut lab) = lab(test, [], "").await else {
        return;
    };
    let question = lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.terminate();
    assert_eq!(lab.sent_to(ALICE), 1, "the command was given up");
    let listed = lab.run(&["approvals", "list", "--json"]).json();
    assert_eq!(listed[0]["id"], name(&question), "{listed}");
    lab.restart();
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.ends_with("allowed once."), "{notice}");
    lab.replies(ALICE, 2).await;
    assert_eq!(deed.times(), 1);
    // Pressed again after another restart, it says that it is over.
    lab.terminate();
    lab.restart();
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 2).await.remove(1);
    assert!(notice.starts_with("Too late"), "{notice}");
    assert_eq!(deed.times(), 1, "it ran again");
    assert_eq!(lab.run(&["audit", "verify"]).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_stopped_at_a_question_goes_on_with_its_answer() {
    let deed = Deed::new();
    let test = "a_turn_that_was_stopped_at_a_question_goes_on_with_its_answer";
    let script = [
        calls_terminal(&deed.command()),
        calls_terminal(&deed.command()),
        Reply::streams(&["done"]),
        Reply::streams(&["yes, still here"]),
    ];
    let Some(mut lab) = lab(test, script, "").await else {
        return;
    };
    lab.telegram.says(ALICE, "do it");
    let id = name(&lab.replies(ALICE, 1).await.remove(0));
    lab.terminate();
    assert_eq!(lab.sent_to(ALICE), 1, "the turn was given up");
    assert_eq!(lab.run(&["approvals", "approve", &id]).code, 0);
    lab.restart();
    let reply = lab.replies(ALICE, 2).await.remove(1);
    assert!(reply.ends_with("done"), "{reply}");
    let asked = lab.asked().remove(1);
    assert!(asked.contains("not run: a restart came first"), "{asked}");
    assert_eq!(deed.times(), 1);
    assert_eq!(lab.ask(ALICE, "still there?").await, "yes, still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn left_by_a_stop_and_answered_by_nobody_it_runs_out_of_time() {
    let deed = Deed::new();
    let test = "left_by_a_stop_and_answered_by_nobody_it_runs_out_of_time";
    let Some(mut lab) = lab(test, [], "timeout: 3").await else {
        return;
    };
    lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.terminate();
    lab.restart();
    let reply = lab.replies(ALICE, 2).await.remove(1);
    assert!(
        reply.contains("nobody answered within 3 seconds"),
        "{reply}"
    );
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.contains("ran out of time"), "{notice}");
    assert_eq!(deed.times(), 0);
}

/// When the gateway goes, seen from the answer.
#[derive(Clone, Copy, Debug)]
enum Moment {
    RightAfterTheAnswer,
    BeforeTheAnswer,
    BetweenAnswerAndOutcome,
}

/// How it goes.
type End = fn(&mut Lab);

#[tokio::test(flavor = "multi_thread")]
async fn whenever_it_goes_nothing_runs_twice_and_every_question_has_an_end() {
    let test = "whenever_it_goes_nothing_runs_twice_and_every_question_has_an_end";
    let Some(mut lab) = lab(test, [], "").await else {
        return;
    };
    let killed: End = |lab| lab.kill();
    let stopped: End = |lab| drop(lab.terminate());
    let mut answered = 0;
    for end in [killed, stopped] {
        for moment in [
            Moment::RightAfterTheAnswer,
            Moment::BeforeTheAnswer,
            Moment::BetweenAnswerAndOutcome,
        ] {
            let deed = Deed::new();
            let question = lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
            let from = lab.sent_to(ALICE);
            match moment {
                Moment::RightAfterTheAnswer => {
                    press(&lab, ALICE, ALICE, "Allow once");
                    end(&mut lab);
                    lab.restart();
                }
                Moment::BeforeTheAnswer => {
                    end(&mut lab);
                    press(&lab, ALICE, ALICE, "Allow once");
                    lab.restart();
                }
                Moment::BetweenAnswerAndOutcome => {
                    press(&lab, ALICE, ALICE, "Allow once");
                    notices(&lab, answered + 1).await;
                    end(&mut lab);
                    lab.restart();
                }
            }
            let outcome = outcome(&lab, from).await;
            assert!(deed.times() <= 1, "{moment:?}: ran twice: {outcome}");
            let refused = outcome.contains("Nothing was run");
            assert!(
                !(refused && deed.times() == 1),
                "{moment:?}: says it did not run: {outcome}"
            );
            answered = lab.telegram.calls("answerCallbackQuery").len();
            let pending = lab.run(&["approvals", "list", "--json"]).json();
            assert_eq!(
                pending.as_array().map(Vec::len),
                Some(0),
                "{question}: {pending}"
            );
        }
    }
    assert_eq!(lab.run(&["audit", "verify"]).code, 0);
}

/// The first reply that is no question: what became of the command.
async fn outcome(lab: &Lab, from: usize) -> String {
    let mut count = from + 1;
    loop {
        let replies = lab.replies(ALICE, count).await;
        let outcome = replies[from..]
            .iter()
            .find(|reply| !reply.contains("may I run this?"));
        if let Some(outcome) = outcome {
            return outcome.clone();
        }
        count = replies.len() + 1;
    }
}
