//! Work that an agent hands on.

use hermetic_testkit::model::{Piece, Reply};
use serde_json::{Value, json};

use crate::approvals::{Deed, config};
use crate::lab::{ALICE, Lab, calls_tool};

/// A model that plays the agent and its subagents, each by what it was told.
fn plays(question: &Value) -> Reply {
    let messages = question["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let said = last["content"].to_string();
    let user = messages.iter().rfind(|message| message["role"] == "user");
    let user = user
        .map(|user| user["content"].to_string())
        .unwrap_or_default();
    let is_result = last["role"] == "tool";
    if user.contains("part one") && user.contains("Context") {
        return match is_result {
            true => Reply::streams(&[
                "one is done: ",
                if said.contains("from-one") {
                    "ok"
                } else {
                    "bad"
                },
            ]),
            false => calls_tool(
                "terminal",
                &json!({"command": "echo from-one > one; cat one"}),
            ),
        };
    }
    if user.contains("part two") {
        return match is_result {
            true => Reply::streams(&[
                "two saw ",
                if said.contains("from-one") {
                    "a file"
                } else {
                    "nothing"
                },
            ]),
            false => calls_tool("terminal", &json!({"command": "cat one 2>&1"})),
        };
    }
    if user.contains("tries all") {
        let names: Vec<_> = question["tools"].as_array().unwrap().iter().collect();
        let names: Vec<_> = names
            .iter()
            .map(|tool| tool["function"]["name"].to_string())
            .collect();
        return Reply::streams(&["tools: ", &names.join(" ")]);
    }
    if user.contains("stalls") && !is_result && !user.contains("hand") {
        return Reply::events([]).then(Piece::Stall);
    }
    match (is_result, user.contains("too many")) {
        (true, _) => Reply::streams(&["they said: ", &said.replace('\\', "")]),
        (false, true) => delegates(
            &json!({"tasks": [{"goal": "1"}, {"goal": "2"}, {"goal": "3"}, {"goal": "4"}]}),
        ),
        (false, false) if user.contains("hand stalls") => {
            delegates(&json!({"goal": "this stalls"}))
        }
        (false, false) if user.contains("look around") => delegates(&json!({"goal": "tries all"})),
        (false, false) => delegates(&json!({"tasks": [
            {"goal": "part one", "context": "all of it"},
            {"goal": "part two", "sandbox": "fresh"},
        ]})),
    }
}

fn delegates(arguments: &Value) -> Reply {
    calls_tool("delegate_task", arguments)
}

#[tokio::test]
async fn parts_are_done_at_once_in_this_sandbox_or_in_one_that_is_gone_afterwards() {
    let lab = Lab::builder()
        .config("streaming: false\n")
        .answering(plays)
        .start()
        .await;
    let said = lab.ask(ALICE, "do both").await;
    assert!(
        said.contains("one is done: ok") && said.contains("two saw nothing"),
        "{said}"
    );
    assert!(said.contains("untrusted data"), "{said}");
    assert_eq!(
        lab.sandboxes().await,
        ["agent:main:telegram:dm:7"],
        "the fresh one is gone"
    );
    assert!(lab.ask(ALICE, "/sh cat one").await.contains("from-one"));
    // A subagent has none of the tools that reach further, and cannot go on for ever.
    let said = lab.ask(ALICE, "look around").await;
    let (_, tools) = said.split_once("tools: ").unwrap();
    assert!(tools.contains("terminal"), "{said}");
    for further in ["cronjob", "delegate_task", "memory", "clarify", "todo"] {
        assert!(!tools.contains(&format!("\"{further}\"")), "{said}");
    }
    let said = lab.ask(ALICE, "too many").await;
    assert!(
        said.contains("4 tasks at once are too many, 3 are the most"),
        "{said}"
    );
}

#[tokio::test]
async fn stop_ends_subagents_with_their_turn() {
    let lab = Lab::builder()
        .config("streaming: false\n")
        .answering(plays)
        .start()
        .await;
    lab.says(ALICE, "hand stalls on");
    lab.model_asked(2).await;
    lab.says(ALICE, "/stop");
    let said = lab.replies(ALICE, 2).await;
    assert!(said.iter().any(|text| text == "Stopped."), "{said:?}");
    assert!(
        said.iter().any(|text| text.contains("[Interrupted.]")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_question_of_a_subagent_names_its_task() {
    let deed = Deed::new();
    let script = [
        delegates(&json!({"goal": "tidy the folder up"})),
        crate::lab::calls_terminal(&deed.command()),
        Reply::streams(&["tidied"]),
        Reply::streams(&["all done"]),
    ];
    let asks = config("approvers: ['telegram:7']");
    let lab = Lab::builder()
        .config("streaming: false\n")
        .config(&asks)
        .script(script);
    let lab = lab.start().await;
    let question = lab.ask(ALICE, "tidy up").await;
    assert!(
        question.contains("asked by subtask 1: tidy the folder up"),
        "{question}"
    );
    lab.chat().presses(ALICE, ALICE, "Allow once");
    assert_eq!(lab.replies(ALICE, 2).await[1], "all done");
    assert_eq!(deed.times(), 1);
}
