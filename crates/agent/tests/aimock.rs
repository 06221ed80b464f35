//! Against npm's `@copilotkit/aimock`, an endpoint that we did not write.
//!
//! Without node, npm or the package these tests are skipped, aloud.

use std::sync::Arc;

use hermetic_agent::endpoint::{ApiDialect, EndpointSettings, ModelEndpoint, ReasoningEffort};
use hermetic_agent::{AssistantPart, LanguageModel, Message, TurnError, TurnInput};
use hermetic_testkit::npm::Aimock;
use hermetic_types::{Secret, SystemClock};
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

fn settings(server: &Aimock, dialect: ApiDialect) -> EndpointSettings {
    let (base, name) = match dialect {
        ApiDialect::ChatCompletions => (server.base_url(), "gpt-4o"),
        ApiDialect::Responses => (server.base_url(), "gpt-5"),
        ApiDialect::AnthropicMessages => (server.base_url(), "claude-sonnet-4-5"),
        // Its version is another one and belongs to the dialect.
        ApiDialect::Gemini => (
            server.base_url().trim_end_matches("/v1").to_owned(),
            "gemini-2.5-flash",
        ),
    };
    EndpointSettings::speaking(dialect, base, Some(Secret::new("some-key")), name)
}

fn model(server: &Aimock, dialect: ApiDialect, stream: bool) -> Arc<dyn LanguageModel> {
    let settings = EndpointSettings {
        stream,
        ..settings(server, dialect)
    };
    Arc::new(ModelEndpoint::new(settings, SystemClock::shared()).expect("settings"))
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
        {
            "match": {"userMessage": "think first", "hasToolResult": false},
            "response": {
                "reasoning": "They want me to think.",
                "toolCalls": [{"name": "echo", "arguments": "{\"text\":\"thought\"}"}],
            },
        },
        {"match": {"userMessage": "think first", "hasToolResult": true}, "response": {"content": "Thought about it."}},
        {"match": {"userMessage": "hello"}, "response": {"content": "Hi from somewhere else, with a longer text that comes in pieces."}},
    ])
}

#[tokio::test]
async fn a_streamed_text_in_every_dialect() {
    let Some(server) = start("aimock::a_streamed_text_in_every_dialect").await else {
        return;
    };
    for dialect in ApiDialect::ALL {
        let lab = Lab::new([]);
        let answer = lab
            .take_turn_with(model(&server, dialect, true), TurnInput::Says("hello"))
            .await
            .unwrap_or_else(|error| panic!("{dialect:?}: {error:?}"));
        assert_eq!(
            answer.text, "Hi from somewhere else, with a longer text that comes in pieces.",
            "{dialect:?}"
        );
        let happened = lab.happened();
        let pieces = happened.iter().filter(|what| what.starts_with("text "));
        assert!(pieces.count() > 1, "{dialect:?}: it came in one piece");
    }
}

#[tokio::test]
async fn plain_text_and_tool_calls_in_every_dialect() {
    let Some(server) = start("aimock::plain_text_and_tool_calls_in_every_dialect").await else {
        return;
    };
    for dialect in ApiDialect::ALL {
        let lab = Lab::new([]);
        let hello = lab
            .take_turn_with(model(&server, dialect, false), TurnInput::Says("hello"))
            .await
            .unwrap_or_else(|error| panic!("{dialect:?}: {error:?}"));
        assert!(hello.text.starts_with("Hi from somewhere else"));
        let twice = lab
            .take_turn_with(
                model(&server, dialect, false),
                TurnInput::Says("say it twice"),
            )
            .await
            .unwrap_or_else(|error| panic!("{dialect:?}: {error:?}"));
        assert_eq!(
            (twice.text.as_str(), results(&twice.messages).len()),
            ("Said it twice.", 2),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn streamed_tool_calls_in_every_dialect() {
    let Some(server) = start("aimock::streamed_tool_calls_in_every_dialect").await else {
        return;
    };
    for dialect in ApiDialect::ALL {
        let lab = Lab::new([]);
        let answer = lab
            .take_turn_with(
                model(&server, dialect, true),
                TurnInput::Says("say it twice"),
            )
            .await
            .unwrap_or_else(|error| panic!("{dialect:?}: {error:?}"));
        assert_eq!(answer.text, "Said it twice.", "{dialect:?}");
        assert_eq!(results(&answer.messages).len(), 2, "{dialect:?}");
        assert!(
            lab.happened().contains(&"echo two".to_owned()),
            "{dialect:?}"
        );
    }
}

/// It refuses a request whose thinking does not come back with its signature, as Anthropic does.
#[tokio::test]
async fn thoughts_come_back_with_their_signature() {
    let Some(server) = start("aimock::thoughts_come_back_with_their_signature").await else {
        return;
    };
    let settings = EndpointSettings {
        effort: Some(ReasoningEffort::Medium),
        ..settings(&server, ApiDialect::AnthropicMessages)
    };
    let model = Arc::new(ModelEndpoint::new(settings, SystemClock::shared()).expect("settings"));
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(model, TurnInput::Says("think first"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "Thought about it.");
    let Message::Assistant { parts } = &answer.messages[1] else {
        panic!("{:?}", answer.messages);
    };
    assert!(matches!(parts[0], AssistantPart::Opaque(_)), "{parts:?}");
}

#[tokio::test]
async fn what_it_does_not_know_is_an_error() {
    let Some(server) = start("aimock::what_it_does_not_know_is_an_error").await else {
        return;
    };
    for dialect in ApiDialect::ALL {
        let lab = Lab::new([]);
        let model = model(&server, dialect, true);
        let error = lab
            .take_turn_with(model, TurnInput::Says("no fixture for this"))
            .await
            .expect_err("no match");
        assert!(
            matches!(error, TurnError::Model(_)),
            "{dialect:?}: {error:?}"
        );
    }
}
