//! People think while the gateway stops and starts again.

use std::time::Duration;

use hermetic_approvals::Answerer;
use hermetic_store::{AnswerOutcome, ApprovalScope, GivenAnswer};
use hermetic_testkit::model::Reply;

use crate::approvals::{Deed, lab, name, notices, press};
use crate::lab::{ALICE, Lab, calls_terminal};

#[tokio::test]
async fn stopped_while_it_waits_the_question_stands_and_the_old_button_counts() {
    let deed = Deed::new();
    let mut lab = lab([], "").await;
    let question = lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.stop().await;
    assert_eq!(lab.sent_to(ALICE), 1, "the command was given up");
    let waiting = lab.approvals().await.pending().await.unwrap();
    assert_eq!(waiting[0].id.to_string(), name(&question), "{waiting:?}");
    lab.start().await;
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.ends_with("allowed once."), "{notice}");
    lab.replies(ALICE, 2).await;
    assert_eq!(deed.times(), 1);
    // Pressed again after another restart, it says that it is over.
    lab.restart().await;
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 2).await.remove(1);
    assert!(notice.starts_with("Too late"), "{notice}");
    assert_eq!(deed.times(), 1, "it ran again");
    // Walked from its beginning, the record holds.
    assert_eq!(lab.audit("answered").lines().count(), 1);
}

#[tokio::test]
async fn what_a_platform_hands_over_while_it_leaves_is_written_down() {
    let script = [Reply::streams(&["here I am"])];
    let mut lab = Lab::builder().script(script).start().await;
    let said = lab.chat().says_at_stop(ALICE, "are you there?");
    lab.stop().await;
    assert!(lab.chat().is_signed(said), "the only copy was dropped");
    lab.start().await;
    assert_eq!(lab.replies(ALICE, 1).await, ["here I am"]);
}

#[tokio::test]
async fn a_turn_that_was_stopped_at_a_question_goes_on_with_its_answer() {
    let deed = Deed::new();
    let script = [
        calls_terminal(&deed.command()),
        calls_terminal(&deed.command()),
        Reply::streams(&["done"]),
        Reply::streams(&["yes, still here"]),
    ];
    let mut lab = lab(script, "").await;
    lab.says(ALICE, "do it");
    let id = name(&lab.replies(ALICE, 1).await.remove(0));
    lab.stop().await;
    assert_eq!(lab.sent_to(ALICE), 1, "the turn was given up");
    let answerer = Answerer {
        by: "the operator",
        via: "command line",
    };
    let (approvals, id) = (lab.approvals().await, id.parse().unwrap());
    let yes = approvals.answer(&id, GivenAnswer::Yes(ApprovalScope::Once), answerer, None);
    assert!(matches!(yes.await.unwrap(), AnswerOutcome::First(_)));
    approvals.tidy().await.unwrap();
    lab.start().await;
    let reply = lab.replies(ALICE, 2).await.remove(1);
    assert!(reply.ends_with("done"), "{reply}");
    let asked = lab.asked().remove(1);
    assert!(asked.contains("not run: a restart came first"), "{asked}");
    assert_eq!(deed.times(), 1);
    assert_eq!(lab.ask(ALICE, "still there?").await, "yes, still here");
}

#[tokio::test]
async fn left_by_a_stop_and_answered_by_nobody_it_runs_out_of_time() {
    let deed = Deed::new();
    let mut lab = lab([], "timeout: 3").await;
    lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.restart().await;
    let mut replies: Vec<String> = Vec::new();
    // Where time was up before the command was taken up again, it is asked about once more.
    while !replies.last().is_some_and(|reply| is_outcome(reply)) {
        lab.pass(Duration::from_secs(4)).await;
        replies = lab.replies(ALICE, replies.len().max(1) + 1).await;
    }
    let reply = replies.pop().unwrap();
    assert!(
        reply.contains("nobody answered within 3 seconds"),
        "{reply}"
    );
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.contains("ran out of time"), "{notice}");
    assert_eq!(deed.times(), 0);
}

fn is_outcome(reply: &str) -> bool {
    !reply.contains("may I run this?")
}
