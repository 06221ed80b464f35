//! People think while the gateway comes and goes, by force and in good order.

use super::approvals::{Deed, lab, notices, press};
use super::lab::{ALICE, Lab};

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
