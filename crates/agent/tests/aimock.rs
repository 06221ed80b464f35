//! Against npm's `@copilotkit/aimock`, an endpoint that we did not write.
//!
//! Without node, npm or the package these tests are skipped, aloud.

use std::sync::Arc;

use hermetic_agent::openai::{OpenAi, Settings};
use hermetic_agent::{Input, Model, TurnError};
use hermetic_testkit::npm::Aimock;
use serde_json::{Value, json};

use crate::lab::{Lab, results};

/// The endpoint, or said aloud why not.
#[expect(clippy::print_stderr, reason = "a skipped test says so aloud")]
async fn start(test: &str) -> Option<Aimock> {
    Aimock::start(&fixtures())
        .await
        .inspect_err(|why| eprintln!("SKIP: {test}: {why}"))
        .ok()
}

fn model(server: &Aimock, stream: bool) -> Arc<dyn Model> {
    let mut settings = Settings::new(server.base_url(), None, "gpt-4o");
    settings.stream = stream;
    Arc::new(OpenAi::new(settings).expect("settings"))
}

fn fixtures() -> Value {
    json!([
        {
            "match": {"userMessage": "say it twice", "hasToolResult": false},
            "response": {"toolCalls": [
                {"name": "echo", "arguments": "{\"text\":\"one\"}"},
                {"name": "echo", "arguments": "{\"text\":\"two\"}"},
            ]},
        },
        {"match": {"userMessage": "say it twice", "hasToolResult": true}, "response": {"content": "Said it twice."}},
        {"match": {"userMessage": "hello"}, "response": {"content": "Hi from somewhere else, with a longer text that comes in pieces."}},
    ])
}

#[tokio::test]
async fn a_streamed_text() {
    let Some(server) = start("aimock::a_streamed_text").await else {
        return;
    };
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(model(&server, true), Input::Says("hello"))
        .await
        .expect("an answer");
    assert_eq!(
        answer.text,
        "Hi from somewhere else, with a longer text that comes in pieces."
    );
    let pieces = lab
        .happened()
        .iter()
        .filter(|what| what.starts_with("text "))
        .count();
    assert!(pieces > 1, "it came in one piece");
}

#[tokio::test]
async fn plain_text_and_tool_calls() {
    let Some(server) = start("aimock::plain_text_and_tool_calls").await else {
        return;
    };
    let lab = Lab::new([]);
    let hello = lab
        .take_turn_with(model(&server, false), Input::Says("hello"))
        .await
        .expect("an answer");
    assert!(hello.text.starts_with("Hi from somewhere else"));
    let twice = lab
        .take_turn_with(model(&server, false), Input::Says("say it twice"))
        .await
        .expect("an answer");
    assert_eq!(
        (twice.text.as_str(), results(&twice.messages).len()),
        ("Said it twice.", 2)
    );
}

#[tokio::test]
async fn streamed_tool_calls() {
    let Some(server) = start("aimock::streamed_tool_calls").await else {
        return;
    };
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(model(&server, true), Input::Says("say it twice"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "Said it twice.");
    assert_eq!(results(&answer.messages).len(), 2);
    assert!(lab.happened().contains(&"echo two".to_owned()));
}

#[tokio::test]
async fn what_it_does_not_know_is_an_error() {
    let Some(server) = start("aimock::what_it_does_not_know_is_an_error").await else {
        return;
    };
    let lab = Lab::new([]);
    let error = lab
        .take_turn_with(model(&server, true), Input::Says("no fixture for this"))
        .await
        .expect_err("no match");
    assert!(matches!(error, TurnError::Model(_)), "{error:?}");
}
