//! An answer that is seen to grow.

use std::sync::Arc;

use hermetic_testkit::model::Reply;
use tokio::sync::Notify;

use super::lab::{ALICE, Lab, text};

const BEGINNING: &str = "This is a long beginning of an answer, ";

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_an_answer_grows_it_goes_on_in_the_same_message() {
    let gate = Arc::new(Notify::new());
    let script = [
        Reply::streams_through(&gate, &[BEGINNING], &["never said"]),
        Reply::streams(&["the answer after all"]),
    ];
    let test = "killed_while_an_answer_grows_it_goes_on_in_the_same_message";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "hello");
    lab.replies(ALICE, 1).await;
    // The id is noted after Telegram gave it; an edit proves that it was.
    lab.kill();
    lab.restart();
    lab.model_asked(2).await;
    let answered = tokio::select! {
        edit = last_edit(&lab, "the answer after all") => edit,
        // Killed before the id was noted: then the answer is a message of its own.
        mut replies = lab.replies(ALICE, 2) => replies.remove(1),
    };
    assert!(answered.ends_with("the answer after all"), "{answered}");
}

async fn last_edit(lab: &Lab, whole: &str) -> String {
    let mut count = 1;
    loop {
        let edits = lab.telegram.wait_for("editMessageText", count).await;
        let shown = text(&edits.last().unwrap().params);
        if shown.ends_with(whole) {
            return shown;
        }
        count = edits.len() + 1;
    }
}
