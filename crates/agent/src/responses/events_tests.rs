use serde_json::json;

use super::*;
use crate::endpoint::{ApiDialect, read_events};

fn settings() -> EndpointSettings {
    EndpointSettings::speaking(ApiDialect::Responses, "https://h/v1", None, "gpt-5.2")
}

fn stream(events: &[Value]) -> Result<Vec<ReplyDelta>, ModelError> {
    let text: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    read_events(&settings(), &[text.as_bytes()])
}

fn call_item(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": arguments})
}

fn thought(encrypted: Option<&str>) -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn item(event: &str, place: usize, item: &Value) -> Value {
    json!({"type": format!("response.output_item.{event}"), "output_index": place, "item": item})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 3},
    }}})
}

fn called(arguments: &[&str]) -> Vec<ReplyDelta> {
    let first = ReplyDelta::ToolCall(CallFragment {
        index: 0,
        id: Some("c1".to_owned()),
        name: Some("look".to_owned()),
        arguments: String::new(),
    });
    let pieces = arguments.iter().map(|piece| {
        ReplyDelta::ToolCall(CallFragment {
            arguments: (*piece).to_owned(),
            ..CallFragment::default()
        })
    });
    std::iter::once(first).chain(pieces).collect()
}

fn usage() -> ReplyDelta {
    ReplyDelta::Usage(TokenUsage {
        input_tokens: 10,
        output_tokens: 8,
        cached_tokens: 4,
        reasoning_tokens: 3,
        ..TokenUsage::default()
    })
}

fn said(text: &str) -> ReplyDelta {
    ReplyDelta::Text(text.to_owned())
}

#[test]
fn pieces_are_taken_once_and_wholes_only_where_no_pieces_came() {
    let output = [thought(Some("ZW5j")), message("Hi"), call_item("{\"a\":1}")];
    let piece = |place: usize, kind: &str, delta: &str| json!({"type": kind, "output_index": place, "delta": delta});
    let arguments = "response.function_call_arguments.delta";
    let in_pieces = [
        json!({"type": "response.created", "response": {"error": null}}),
        item("added", 0, &thought(None)),
        item("done", 0, &output[0]),
        item("added", 1, &message("")),
        piece(1, "response.output_text.delta", "H"),
        piece(1, "response.output_text.delta", ""),
        piece(1, "response.output_text.delta", "i"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Hi"}),
        item("done", 1, &output[1]),
        item("added", 2, &call_item("")),
        piece(2, arguments, "{\"a"),
        piece(2, arguments, "\":1}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"a\":1}"}),
        item("done", 2, &output[2]),
        completed(&output),
    ];
    let opaque = ReplyDelta::Opaque(OpaquePart::new(settings().provider(), output[0].clone()));
    let end = [usage(), ReplyDelta::Finish(FinishReason::Done)];
    let expected = |text: &[&str], arguments: &[&str]| {
        let mut all = vec![ReplyDelta::Thinking("ZW5j".len()), opaque.clone()];
        all.extend(text.iter().map(|text| said(text)));
        all.extend(called(arguments));
        all.extend(end.clone());
        all
    };
    assert_eq!(
        stream(&in_pieces).unwrap(),
        expected(&["H", "i"], &["{\"a", "\":1}"])
    );
    let items_only = [
        item("done", 0, &output[0]),
        item("done", 1, &output[1]),
        item("done", 2, &output[2]),
        completed(&output),
    ];
    let whole = expected(&["Hi"], &["{\"a\":1}"]);
    assert_eq!(stream(&items_only).unwrap(), whole);
    assert_eq!(stream(&[completed(&output)]).unwrap(), whole);
    let settings = settings();
    let body = completed(&output)["response"].to_string();
    let at_once = ResponsesReader::new(&settings).whole(body.as_bytes());
    assert_eq!(at_once.unwrap(), whole);
}

#[test]
fn thoughts_that_are_not_encrypted_are_the_providers_own() {
    let deltas = stream(&[item("done", 0, &thought(None)), completed(&[])]).unwrap();
    assert_eq!(deltas, [usage(), ReplyDelta::Finish(FinishReason::Done)]);
}

#[test]
fn reasons_to_stop_and_refusals() {
    for (reason, finish) in [
        ("max_output_tokens", FinishReason::Length),
        ("content_filter", FinishReason::Filtered),
    ] {
        let event = json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
        assert_eq!(stream(&[event]).unwrap(), [ReplyDelta::Finish(finish)]);
    }
    let refuses = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."});
    assert_eq!(stream(&[refuses, completed(&[])]).unwrap()[0], said("No."));
}

#[test]
fn errors_in_the_middle_and_an_end_without_one() {
    let text = json!({"type": "response.output_text.delta", "delta": "Hi"});
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}}});
    let plain = json!({"type": "error", "code": "server_error", "message": "oops"});
    let nested = json!({"type": "error", "error": {"type": "server_error", "message": "oops"}});
    for event in [failed, plain, nested] {
        let error = stream(&[text.clone(), event]).unwrap_err();
        assert!(matches!(error, ModelError::Busy { .. }), "{error:?}");
    }
    let long = json!({"type": "error", "code": "context_length_exceeded", "message": "long"});
    let error = stream(&[long]).unwrap_err();
    assert!(
        matches!(error, ModelError::ContextTooLong { .. }),
        "{error:?}"
    );
    let error = stream(&[text]).unwrap_err();
    assert!(matches!(error, ModelError::Cut { .. }), "{error:?}");
}
