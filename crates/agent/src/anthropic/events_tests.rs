use serde_json::json;

use super::*;
use crate::endpoint::{ApiDialect, read_events};

fn settings() -> EndpointSettings {
    EndpointSettings::speaking(ApiDialect::AnthropicMessages, "https://h", None, "m")
}

fn stream(events: &[Value]) -> Result<Vec<ReplyDelta>, ModelError> {
    let lines = events.iter().map(|event| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    });
    let text: String = lines.collect();
    read_events(&settings(), &[text.as_bytes()])
}

fn start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn ends(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn piece(index: usize, arguments: &str) -> ReplyDelta {
    ReplyDelta::ToolCall(CallFragment {
        index,
        arguments: arguments.to_owned(),
        ..CallFragment::default()
    })
}

#[test]
fn thoughts_with_their_signature_text_and_parallel_calls_in_odd_pieces() {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1,
        }}}),
        json!({"type": "ping"}),
        start(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, &json!({"type": "thinking_delta", "thinking": "let me "})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, &json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, &json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
        stop(1),
        start(2, &json!({"type": "text", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": "Hi"})),
        stop(2),
        start(
            3,
            &json!({"type": "tool_use", "id": "t1", "name": "look", "input": {}}),
        ),
        delta(3, &json!({"type": "input_json_delta", "partial_json": ""})),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": "{\"a"}),
        ),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": "\":1}"}),
        ),
        stop(3),
        start(
            4,
            &json!({"type": "tool_use", "id": "t2", "name": "stay", "input": {}}),
        ),
        stop(4),
    ];
    events.extend(ends("tool_use"));
    let deltas = stream(&events).unwrap();
    let call = |index, id: &str, name: &str| {
        ReplyDelta::ToolCall(CallFragment {
            index,
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: String::new(),
        })
    };
    let opaque = |data| ReplyDelta::Opaque(OpaquePart::new(settings().provider(), data));
    let usage = |output_tokens| {
        ReplyDelta::Usage(TokenUsage {
            input_tokens: 123,
            output_tokens,
            cached_tokens: 100,
            cache_write_tokens: 20,
            ..TokenUsage::default()
        })
    };
    let thought = json!({"type": "thinking", "thinking": "let me see", "signature": "c2ln"});
    assert_eq!(
        deltas,
        [
            usage(1),
            ReplyDelta::Thinking("let me ".len()),
            ReplyDelta::Thinking("see".len()),
            opaque(thought),
            ReplyDelta::Thinking("ZGF0YQ==".len()),
            opaque(json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
            ReplyDelta::Text("Hi".to_owned()),
            call(0, "t1", "look"),
            piece(0, "{\"a"),
            piece(0, "\":1}"),
            call(1, "t2", "stay"),
            piece(1, "{}"),
            usage(7),
            ReplyDelta::Finish(FinishReason::Done),
        ]
    );
}

#[test]
fn blocks_may_be_interleaved() {
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let json = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let mut events = vec![
        start(0, &tool("a")),
        start(1, &tool("b")),
        delta(1, &json("{\"b\":")),
        delta(0, &json("{\"a\":1}")),
        stop(0),
        delta(1, &json("2}")),
        stop(1),
    ];
    events.extend(ends("tool_use"));
    let deltas = stream(&events).unwrap();
    assert_eq!(
        deltas[2..5],
        [piece(1, "{\"b\":"), piece(0, "{\"a\":1}"), piece(1, "2}")]
    );
}

#[test]
fn reasons_to_stop() {
    let table = [
        ("end_turn", FinishReason::Done),
        ("stop_sequence", FinishReason::Done),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::Filtered),
    ];
    for (reason, finish) in table {
        let deltas = stream(&ends(reason)).unwrap();
        assert_eq!(deltas.last(), Some(&ReplyDelta::Finish(finish)), "{reason}");
    }
}

#[test]
fn an_error_in_the_middle_and_an_end_without_one() {
    let text = delta(0, &json!({"type": "text_delta", "text": "Hi"}));
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let error = stream(&[text.clone(), overloaded]).unwrap_err();
    assert!(matches!(error, ModelError::Busy { .. }), "{error:?}");
    let error = stream(&[text]).unwrap_err();
    assert!(matches!(error, ModelError::Cut { .. }), "{error:?}");
}

#[test]
fn an_answer_in_one_piece_says_the_same() {
    let settings = settings();
    let body = json!({
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let deltas = AnthropicReader::new(&settings)
        .whole(body.to_string().as_bytes())
        .unwrap();
    assert_eq!(deltas.len(), 6);
    assert!(matches!(&deltas[2], ReplyDelta::Opaque(_)));
    assert!(
        matches!(&deltas[4], ReplyDelta::ToolCall(call) if call.arguments == r#"{"a":1}"#),
        "{deltas:?}"
    );
}
