use serde_json::json;

use super::*;
use crate::endpoint::{ApiDialect, read_events};

fn settings() -> EndpointSettings {
    EndpointSettings::speaking(ApiDialect::Gemini, "https://h", None, "gemini-3-pro")
}

fn stream(events: &[Value]) -> Result<Vec<ReplyDelta>, ModelError> {
    let text: String = events
        .iter()
        .map(|event| format!("data: {event}\r\n\r\n"))
        .collect();
    read_events(&settings(), &[text.as_bytes()])
}

fn says(parts: &Value, reason: Option<&str>) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]})
}

fn opaque(data: Value) -> ReplyDelta {
    ReplyDelta::Opaque(OpaquePart::new(settings().provider(), data))
}

#[test]
fn text_calls_signatures_and_figures() {
    let usage = json!({
        "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 3,
    });
    let mut last = says(
        &json!([{"text": "", "thoughtSignature": "s2"}]),
        Some("STOP"),
    );
    last["usageMetadata"] = usage;
    let deltas = stream(&[
        says(&json!([{"text": "pondering", "thought": true}]), None),
        says(&json!([{"text": "Hi"}, {"text": ""}]), None),
        says(
            &json!([
                {"functionCall": {"id": "g1", "name": "look", "args": {"a": 1}}, "thoughtSignature": "s1"},
                {"functionCall": {"name": "stay"}},
            ]),
            None,
        ),
        last,
    ])
    .unwrap();
    let call = |index, id: Option<&str>, name: &str, arguments: &str| {
        ReplyDelta::ToolCall(CallFragment {
            index,
            id: id.map(str::to_owned),
            name: Some(name.to_owned()),
            arguments: arguments.to_owned(),
        })
    };
    assert_eq!(
        deltas,
        [
            ReplyDelta::Thinking("pondering".len()),
            ReplyDelta::Text("Hi".to_owned()),
            opaque(json!({"thoughtSignature": "s1", "id": "g1"})),
            call(0, Some("g1"), "look", r#"{"a":1}"#),
            call(1, None, "stay", "{}"),
            ReplyDelta::Usage(TokenUsage {
                input_tokens: 10,
                output_tokens: 8,
                cached_tokens: 4,
                reasoning_tokens: 3,
                ..TokenUsage::default()
            }),
            opaque(json!({"thoughtSignature": "s2"})),
            ReplyDelta::Finish(FinishReason::Done),
        ]
    );
}

#[test]
fn reasons_to_stop() {
    let table = [
        ("STOP", FinishReason::Done),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::Filtered),
        ("PROHIBITED_CONTENT", FinishReason::Filtered),
    ];
    for (reason, finish) in table {
        let deltas = stream(&[says(&json!([]), Some(reason))]).unwrap();
        assert_eq!(deltas, [ReplyDelta::Finish(finish)], "{reason}");
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    assert_eq!(
        stream(&[blocked]).unwrap(),
        [ReplyDelta::Finish(FinishReason::Filtered)]
    );
    let garbled = stream(&[says(&json!([]), Some("MALFORMED_FUNCTION_CALL"))]).unwrap_err();
    assert!(garbled.is_passing(), "{garbled:?}");
}

#[test]
fn figures_of_an_answer_that_was_garbled_go_out_before_the_failure() {
    let settings = settings();
    let mut garbled = says(&json!([]), Some("MALFORMED_FUNCTION_CALL"));
    garbled["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 5});
    let garbled = garbled.to_string();
    for in_one_piece in [false, true] {
        let mut reader = GeminiReader::new(&settings);
        let deltas = match in_one_piece {
            true => reader.whole(garbled.as_bytes()).unwrap(),
            false => reader.event(&garbled).unwrap(),
        };
        assert!(
            matches!(deltas[..], [ReplyDelta::Usage(usage)] if usage.tokens() == 15),
            "{deltas:?}"
        );
        assert!(matches!(
            reader.failed(),
            Some(ModelError::Unreadable { .. })
        ));
    }
}

#[test]
fn an_error_in_the_middle_and_an_end_without_one() {
    let text = says(&json!([{"text": "Hi"}]), None);
    let busy = json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    let error = stream(&[text.clone(), busy]).unwrap_err();
    assert!(
        matches!(error, ModelError::Busy { status: 503, .. }),
        "{error:?}"
    );
    let error = stream(&[text]).unwrap_err();
    assert!(matches!(error, ModelError::Cut { .. }), "{error:?}");
}

#[test]
fn an_answer_in_one_piece_or_as_a_list_says_the_same() {
    let settings = settings();
    let one = says(&json!([{"text": "Hi"}]), Some("STOP"));
    for body in [one.clone(), json!([one])] {
        let deltas = GeminiReader::new(&settings)
            .whole(body.to_string().as_bytes())
            .unwrap();
        assert_eq!(
            deltas,
            [
                ReplyDelta::Text("Hi".to_owned()),
                ReplyDelta::Finish(FinishReason::Done)
            ]
        );
    }
    let nothing = GeminiReader::new(&settings).whole(b"{\"hello\": 1}");
    assert!(matches!(nothing, Err(ModelError::Unreadable { .. })));
}
