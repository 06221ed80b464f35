//! Discord, over its wire: mention in, sealed answer out in a thread, an approval by a button.

use hermetic_testkit::discord::{
    CHANNEL, CREATE_MESSAGE, Call, DiscordServer, EDIT_MESSAGE, FIRST_ANSWER, MAKE_THREAD,
};
use hermetic_testkit::model::Reply;

use crate::approvals::{self, Deed};
use crate::lab::{Lab, calls_terminal, stalls};

const ALICE: u64 = 7;
const MALLORY: u64 = 9;

async fn server() -> DiscordServer {
    DiscordServer::start().await.unwrap()
}

/// Waits until the bot shows such a text somewhere.
async fn shows(server: &DiscordServer, channel: u64, text: &str) {
    let shown = || {
        let shown = server.shown(channel);
        shown.iter().any(|shown| shown.contains(text)).then_some(())
    };
    server.wait_until(text, shown).await;
}

fn text(call: &Call) -> &str {
    call.body["content"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_mention_is_answered_from_a_sandbox_in_a_thread_and_strangers_learn_nothing() {
    let server = server().await;
    let script = [
        calls_terminal("echo $((6 * 7))"),
        Reply::streams(&["It is __42__."]),
    ];
    let lab = Lab::builder().script(script).discord(&server).start().await;
    server.wait_for_bot().await;
    server.says(MALLORY, "who is there?");
    server.says_in(CHANNEL, MALLORY, "<@42> let me in");
    let asked = server.says_in(CHANNEL, ALICE, "<@42> what is six times seven?");
    shows(&server, asked, "It is **42**.").await;
    assert!(lab.asked()[1].contains("42"), "the command ran");
    assert_eq!(
        server.calls(MAKE_THREAD).len(),
        1,
        "a stranger caused no thread"
    );
    assert_eq!(server.shown(CHANNEL), [""; 0]);
    assert_eq!(server.shown(server.private_channel(MALLORY)), [""; 0]);
}

#[tokio::test]
async fn a_question_is_answered_by_a_button_of_who_may_answer() {
    let deed = Deed::new();
    let server = server().await;
    let config = approvals::config("approvers: ['discord:7']");
    let mut lab = Lab::builder()
        .config(&config)
        .discord(&server)
        .start()
        .await;
    server.wait_for_bot().await;
    let private = server.private_channel(ALICE);
    server.says(ALICE, &format!("/sh {}", deed.command()));
    let question = server.wait_until("a question", || {
        let calls = server.calls(CREATE_MESSAGE);
        calls
            .into_iter()
            .find(|call| call.body["components"].is_array())
    });
    let question = question.await;
    let button = &question.body["components"][0]["components"][0];
    assert_eq!(button["label"], "Allow once");
    let data = button["custom_id"].as_str().unwrap().to_owned();
    server.presses(MALLORY, private, question.message, &data);
    server.wait_for(FIRST_ANSWER, 1).await;
    assert_eq!(deed.times(), 0, "a stranger said yes");

    // A restart between the question and its answer.
    lab.restart().await;
    server.wait_for_bot().await;
    server.presses(ALICE, private, question.message, &data);
    let edited = server.wait_for(EDIT_MESSAGE, 1).await;
    assert!(!text(&edited[0]).is_empty());
    server
        .wait_until("the deed", || (deed.times() == 1).then_some(()))
        .await;
}

#[tokio::test]
async fn a_message_that_was_taken_over_is_answered_after_a_crash() {
    let server = server().await;
    let script = [stalls(), Reply::streams(&["here it is"])];
    let mut lab = Lab::builder().script(script).discord(&server).start().await;
    server.wait_for_bot().await;
    server.says(ALICE, "take your time");
    lab.model_asked(1).await;
    lab.crash_and_start().await;
    shows(&server, server.private_channel(ALICE), "here it is").await;
    // The session went on, and so did what was said meanwhile.
    assert_eq!(server.identifies(), 1);
}
