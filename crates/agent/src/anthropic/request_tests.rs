use serde_json::{Value, json};

use super::*;
use crate::endpoint::ApiDialect;
use crate::{AssistantPart, CallId, MediaPart, MessagePart, OpaquePart, ToolCall};

fn settings() -> EndpointSettings {
    let dialect = ApiDialect::AnthropicMessages;
    EndpointSettings::speaking(dialect, "https://h", None, "claude-opus-4-6")
}

fn wire(settings: &EndpointSettings, messages: &[Message], tools: &[ToolSpec]) -> Value {
    let ask = ModelRequest { messages, tools };
    serde_json::from_str(&body(settings, ask)).unwrap()
}

fn calling(id: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "look".to_owned(),
        arguments: r#"{"at":1}"#.to_owned(),
    })
}

#[test]
fn results_and_words_after_them_are_one_turn_and_thoughts_stand_where_they_stood() {
    let settings = settings();
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let others = OpaquePart::new("gemini@h/m", json!({"thoughtSignature": "x"}));
    let messages = [
        Message::system("be good"),
        Message::user("hi"),
        Message::Assistant {
            parts: vec![
                AssistantPart::Opaque(OpaquePart::new(settings.provider(), thought.clone())),
                AssistantPart::Opaque(others),
                AssistantPart::text(" \n"),
                calling("a"),
                calling("b.c:d"),
            ],
        },
        Message::tool(CallId::new("a"), "there"),
        Message::failed_tool(CallId::new("b.c:d"), "dark"),
        Message::user("go on"),
    ];
    let wire = wire(&settings, &messages, &[]);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        wire["system"],
        json!([{"type": "text", "text": "be good", "cache_control": mark}])
    );
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {"at": 1}});
    assert_eq!(
        wire["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]},
            {"role": "assistant", "content": [thought, call("a"), call("b_c_d")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "there"}]},
                {"type": "tool_result", "tool_use_id": "b_c_d", "is_error": true, "content": [{"type": "text", "text": "dark"}]},
                {"type": "text", "text": "go on", "cache_control": mark},
            ]},
        ])
    );
}

#[test]
fn no_more_than_four_marks_are_set_and_none_where_nobody_wants_them() {
    let mut settings = settings();
    let messages: Vec<_> = std::iter::once(Message::system("s"))
        .chain((0..6).flat_map(|_| [Message::user("q"), Message::assistant("a")]))
        .collect();
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "".into(),
        schema: json!({"type": "object"}).into(),
    };
    let tools = [tool("one"), tool("two")];
    let marks = |wire: &Value| wire.to_string().matches("cache_control").count();
    let marked = wire(&settings, &messages, &tools);
    assert_eq!(marks(&marked), 4, "{marked}");
    assert_eq!(marked["tools"][1]["cache_control"]["type"], "ephemeral");
    settings.cache_prompts = false;
    assert_eq!(marks(&wire(&settings, &messages, &tools)), 0);
}

#[test]
fn images_and_pdfs_are_shown_and_other_files_are_named() {
    let media = |kind: &str| MediaPart::inline(kind, b"png").unwrap();
    let mut plan = media("application/pdf");
    plan.name = Some("plan.pdf".to_owned());
    let parts = vec![
        MessagePart::Image(media("image/png")),
        MessagePart::Image(media("image/tiff")),
        MessagePart::File(plan),
        MessagePart::File(media("text/csv")),
    ];
    let messages = [
        Message::User {
            parts: parts.clone(),
        },
        Message::Assistant {
            parts: vec![calling("a")],
        },
        Message::Tool {
            call_id: CallId::new("a"),
            failed: false,
            parts,
        },
    ];
    let wire = wire(&settings(), &messages, &[]);
    let source = |kind: &str| json!({"type": "base64", "media_type": kind, "data": "cG5n"});
    let shown = &wire["messages"][0]["content"];
    assert_eq!(
        shown[0],
        json!({"type": "image", "source": source("image/png")})
    );
    assert_eq!(shown[1]["text"], "[image/tiff, without a name, not shown]");
    assert_eq!(
        shown[2],
        json!({"type": "document", "source": source("application/pdf"), "title": "plan.pdf"})
    );
    assert_eq!(shown[3]["text"], "[text/csv, without a name, not shown]");
    let result = &wire["messages"][2]["content"][0]["content"];
    assert_eq!((&result[0], &result[2]), (&shown[0], &shown[2]));
}

#[test]
fn a_model_that_did_not_think_before_it_called_is_not_made_to_think_on() {
    let mut settings = settings();
    settings.model = "claude-sonnet-4-5".to_owned();
    settings.effort = Some(crate::endpoint::ReasoningEffort::Low);
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let thought = AssistantPart::Opaque(OpaquePart::new(settings.provider(), thought));
    for (parts, thinks) in [
        (vec![thought, calling("a")], true),
        (vec![calling("a")], false),
        (vec![AssistantPart::text("done")], true),
    ] {
        let messages = [
            Message::user("hi"),
            Message::Assistant { parts },
            Message::tool(CallId::new("a"), "there"),
        ];
        let wire = wire(&settings, &messages, &[]);
        assert_eq!(wire.get("thinking").is_some(), thinks, "{wire}");
    }
}
