//! People on Slack, over the wire: a thread that is a conversation, a button, and a restart in between.

use hermetic_testkit::model::Reply;
use hermetic_testkit::slack::{CHANNEL, SlackServer, WhileAway, direct_channel};
use serde_json::Value;

use crate::approvals::{self, Deed};
use crate::lab::{Lab, calls_terminal};

const ALICE: &str = "U0ALICE";
const STRANGER: &str = "U0MALLORY";

async fn server() -> SlackServer {
    let server = SlackServer::start().await.unwrap();
    // Whoever speaks while the gateway starts is heard when it has.
    server.while_away(WhileAway::Kept);
    server
}

/// The time of the first of the bot's messages here that says so.
async fn said(server: &SlackServer, channel: &str, words: &str) -> String {
    let what = format!("{words:?} in {channel}");
    let shown = || {
        server
            .messages(channel)
            .into_iter()
            .find(|(_, text)| text.contains(words))
    };
    server.wait_until(&what, shown).await.0
}

/// What the button with this label carries.
fn button(message: &Value, label: &str) -> String {
    let blocks = message["blocks"].as_array().unwrap().iter();
    let mut buttons = blocks.flat_map(|block| block["elements"].as_array().into_iter().flatten());
    let button = buttons.find(|button| button["text"]["text"] == label);
    button.unwrap()["value"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_mention_is_answered_in_its_thread_from_a_sandbox_and_a_stranger_hears_nothing() {
    let server = server().await;
    let script = [
        calls_terminal("echo $((6 * 7))"),
        Reply::streams(&["It is ", "42."]),
    ];
    let mut lab = Lab::builder().slack(&server).script(script).start().await;
    server.mentions(CHANNEL, STRANGER, "and who are you?");
    let question = server.mentions(CHANNEL, ALICE, "what is six times seven?");
    let answer = said(&server, CHANNEL, "It is 42.").await;
    let answer = server.message(CHANNEL, &answer).unwrap();
    assert_eq!(answer["thread_ts"], question);
    assert!(lab.tool_result(1).to_string().contains("42"));
    assert_eq!(
        server.messages(CHANNEL).len(),
        1,
        "{:?}",
        server.messages(CHANNEL)
    );
    server.wait_until_acknowledged().await;
    lab.stop().await;
}

#[tokio::test]
async fn a_button_that_was_shown_before_a_restart_counts_and_what_was_missed_is_answered() {
    let (server, deed) = (server().await, Deed::new());
    let approvals = approvals::config("approvers: ['slack:U0ALICE']");
    let mut lab = Lab::builder()
        .config(&approvals)
        .slack(&server)
        .start()
        .await;
    let channel = direct_channel(ALICE);
    server.says(
        ALICE,
        &format!("!sh {}", deed.command().replace('>', "&gt;")),
    );
    let question = said(&server, &channel, "may I run this?").await;
    assert_eq!(deed.times(), 0, "it ran before anybody answered");

    // Received, and the gateway goes before the answer.
    lab.stop().await;
    server.wait_for_open_sockets(0).await;
    server.while_away(WhileAway::Lost);
    server.says(ALICE, "!whoami");
    lab.start().await;
    said(&server, &channel, "user: U0ALICE").await;
    server.wait_for_open_sockets(1).await;
    let message = server.message(&channel, &question).unwrap();
    server.presses(ALICE, &channel, &question, &button(&message, "Allow once"));
    let told = server.wait_for("chat.postEphemeral", 1).await.remove(0);
    assert!(
        told["text"].as_str().unwrap().ends_with("allowed once."),
        "{told}"
    );
    assert_eq!(told["user"], ALICE);
    server
        .wait_until("the command to run", || (deed.times() == 1).then_some(()))
        .await;
    server.wait_until_acknowledged().await;
    lab.stop().await;
}
