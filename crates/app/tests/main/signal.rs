//! Signal, over the wire of a daemon: message in, sealed answer out, an answer by a reaction.

use hermetic_testkit::model::Reply;
use hermetic_testkit::signal_server::{ALICE, BOB, Call, ReceiveMode, SignalServer, in_group};
use serde_json::json;

use crate::approvals::{self, Deed};
use crate::lab::{Lab, calls_terminal};

const GROUP: &str = "Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=";

async fn daemon() -> SignalServer {
    SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap()
}

/// What was sent, once there is so much of it.
async fn sent(daemon: &SignalServer, count: usize) -> Vec<Call> {
    daemon.wait_for("send", count).await
}

fn text(call: &Call) -> &str {
    call.params["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_message_is_answered_from_a_sandbox_and_strangers_learn_nothing() {
    for url in [SignalServer::url, SignalServer::socket_url] {
        let daemon = daemon().await;
        let script = [
            calls_terminal("echo $((6 * 7))"),
            Reply::streams(&["It is **42**."]),
        ];
        let builder = Lab::builder().script(script).signal(&url(&daemon));
        let lab = builder.start().await;
        daemon.says(BOB, "who is there?");
        daemon.says_with(ALICE, in_group(GROUP, "in a group that nobody listed"));
        daemon.says(ALICE, "what is six times seven?");
        let answer = sent(&daemon, 1).await.remove(0);
        assert_eq!(text(&answer), "It is 42.");
        assert_eq!(answer.params["recipient"], json!([ALICE.uuid]));
        assert_eq!(answer.params["textStyle"], json!(["6:2:BOLD"]));
        assert!(lab.asked()[1].contains("42"), "the command ran");
        for shown in ["sendReceipt", "sendTyping"] {
            let calls = daemon.calls(shown);
            let to_bob = calls
                .iter()
                .find(|call| call.params.to_string().contains(BOB.uuid));
            assert_eq!(to_bob, None, "a stranger learns nothing");
        }
    }
}

#[tokio::test]
async fn a_question_is_answered_by_a_reaction_of_who_may_answer() {
    let deed = Deed::new();
    let daemon = daemon().await;
    let config = approvals::config("approvers: ['signal:+4915100000002']");
    let mut lab = Lab::builder()
        .config(&config)
        .signal(&daemon.url())
        .start()
        .await;
    daemon.says(ALICE, &format!("/sh {}", deed.command()));
    let question = sent(&daemon, 1).await.remove(0);
    assert!(text(&question).contains("👍 Allow once"), "{question:?}");
    daemon.reacts(BOB, question.timestamp, "👍");
    // A restart between the question and its answer.
    lab.restart().await;
    assert_eq!(deed.times(), 0, "a stranger said yes");
    daemon.reacts(ALICE, question.timestamp, "👍🏽");
    let is_told = || {
        let calls = daemon.calls("send");
        calls
            .iter()
            .any(|call| text(call).ends_with("allowed once."))
            .then_some(())
    };
    daemon.wait_until("the notice", is_told).await;
    sent(&daemon, 3).await;
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn a_turn_that_a_restart_cuts_is_told_and_the_next_message_is_answered() {
    let daemon = daemon().await;
    let script = [crate::lab::stalls(), Reply::streams(&["here it is"])];
    let builder = Lab::builder().script(script);
    let mut lab = builder.signal(&daemon.socket_url()).start().await;
    daemon.says(ALICE, "take your time");
    lab.model_asked(1).await;
    lab.stop().await;
    // Nobody is connected: it waits at Signal's servers.
    daemon.wait_for_listeners(0).await;
    daemon.says(ALICE, "and now?");
    lab.start().await;
    let calls = sent(&daemon, 2).await;
    assert!(text(&calls[0]).contains("being stopped"), "{calls:?}");
    assert!(text(&calls[1]).contains("here it is"), "{calls:?}");
}

#[tokio::test]
async fn in_a_group_that_is_listed_only_who_is_allowed_is_answered() {
    let daemon = daemon().await;
    let lab = Lab::builder()
        .config(&format!(
            "platforms: {{signal: {{group_allowed_users: ['{GROUP}']}}}}\n"
        ))
        .script([Reply::streams(&["hello Alice"])])
        .signal(&daemon.url())
        .start()
        .await;
    daemon.says_with(BOB, in_group(GROUP, "let me in"));
    daemon.says_with(ALICE, in_group(GROUP, "hello"));
    let answer = sent(&daemon, 1).await.remove(0);
    assert_eq!(
        (text(&answer), answer.params["groupId"].as_str()),
        ("hello Alice", Some(GROUP))
    );
    assert_eq!(answer.params["quoteAuthor"], ALICE.uuid);
    assert!(!lab.asked()[0].contains("let me in"));
}
