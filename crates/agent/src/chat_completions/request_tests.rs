use serde_json::json;

use super::*;
use crate::{AssistantPart, MediaPart, MessagePart, ModelText, OpaquePart};

fn wire(messages: &[Message]) -> Value {
    wire_at("http://127.0.0.1:1/v1", "m", messages)
}

fn wire_at(base_url: &str, model: &str, messages: &[Message]) -> Value {
    let settings = EndpointSettings::new(base_url, None, model);
    let ask = ModelRequest {
        messages,
        tools: &[],
    };
    let body: Value = serde_json::from_str(&body(&settings, ask)).unwrap();
    body["messages"].clone()
}

fn calling(id: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    })
}

fn png() -> MediaPart {
    MediaPart::inline("image/png", b"png").unwrap()
}

#[test]
fn text_goes_out_as_plain_strings() {
    let call = json!({
        "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"},
    });
    let messages = [
        Message::system("be good"),
        Message::user("hi"),
        Message::Assistant {
            parts: vec![calling("c1")],
        },
        Message::failed_tool(CallId::new("c1"), "dark"),
        Message::assistant("it is dark"),
    ];
    assert_eq!(
        wire(&messages),
        json!([
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "content": "dark", "tool_call_id": "c1"},
            {"role": "assistant", "content": "it is dark"},
        ])
    );
}

#[test]
fn images_go_out_as_addresses_that_hold_them() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}});
    let said = Message::User {
        parts: vec![
            MessagePart::text("what is this?"),
            MessagePart::Image(png()),
        ],
    };
    let text = json!({"type": "text", "text": "what is this?"});
    assert_eq!(
        wire(&[said]),
        json!([{"role": "user", "content": [text, image]}])
    );
}

#[test]
fn images_of_results_follow_the_last_result() {
    let result = |id: &str| Message::Tool {
        call_id: CallId::new(id),
        failed: false,
        parts: vec![MessagePart::text("there"), MessagePart::Image(png())],
    };
    let messages = [
        Message::Assistant {
            parts: vec![calling("a"), calling("b")],
        },
        result("a"),
        result("b"),
        Message::assistant("two of them"),
    ];
    let wire = wire(&messages);
    let roles: Vec<_> = wire
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["assistant", "tool", "tool", "user", "assistant"]);
    assert_eq!(wire[1]["content"], "there\n[image 1 follows]");
    assert_eq!(wire[3]["content"].as_array().unwrap().len(), 3);
}

#[test]
fn what_is_another_providers_and_what_cannot_be_shown_stays_here() {
    let thought = OpaquePart::new("anthropic", json!({"signature": "c2lnbmVk"}));
    let mut plan = png();
    plan.media_type = "application/pdf".to_owned();
    plan.name = Some("plan.pdf".to_owned());
    let messages = [
        Message::User {
            parts: vec![
                MessagePart::text(ModelText::assembled("read")),
                MessagePart::File(plan),
            ],
        },
        Message::Assistant {
            parts: vec![AssistantPart::Opaque(thought), AssistantPart::text("ok")],
        },
    ];
    assert_eq!(
        wire(&messages),
        json!([
            {"role": "user", "content": "read\n[application/pdf, plan.pdf, not shown]"},
            {"role": "assistant", "content": "ok"},
        ])
    );
}

#[test]
fn a_pdf_goes_out_as_a_file_where_that_is_known_to_be_understood() {
    let mut plan = MediaPart::inline("application/pdf", b"pdf").unwrap();
    plan.name = Some("plan.pdf".to_owned());
    let messages = [
        Message::User {
            parts: vec![MessagePart::text("read"), MessagePart::File(plan.clone())],
        },
        Message::Assistant {
            parts: vec![calling("a")],
        },
        Message::Tool {
            call_id: CallId::new("a"),
            failed: false,
            parts: vec![MessagePart::text("there"), MessagePart::File(plan)],
        },
    ];
    let file = json!({"type": "file", "file": {
        "filename": "plan.pdf", "file_data": "data:application/pdf;base64,cGRm",
    }});
    for base_url in ["https://api.openai.com/v1", "https://openrouter.ai/api/v1"] {
        let wire = wire_at(base_url, "m", &messages);
        assert_eq!(wire[0]["content"][1], file, "{base_url}");
        assert_eq!(wire[2]["content"], "there\n[file 1 follows]");
        assert_eq!(wire[3]["content"][1], file, "{base_url}");
    }
    for base_url in [
        "http://127.0.0.1:1/v1",
        "https://api.openai.com.example.org/v1",
    ] {
        let wire = wire_at(base_url, "m", &messages);
        assert!(!wire.to_string().contains("file_data"), "{base_url}");
        assert_eq!(wire.as_array().unwrap().len(), 3, "{base_url}");
    }
}

#[test]
fn claude_behind_openrouter_is_told_what_to_keep() {
    let messages = [
        Message::system("be good"),
        Message::user("hi"),
        Message::Assistant {
            parts: vec![calling("a"), calling("b")],
        },
        Message::tool(CallId::new("a"), "one"),
        Message::tool(CallId::new("b"), "two"),
        Message::user("and me"),
        Message::assistant("done"),
        Message::user("go on"),
    ];
    let router = "https://openrouter.ai/api/v1";
    let wire = wire_at(router, "anthropic/claude-opus-4.6", &messages);
    let marked = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let contents: Vec<_> = wire
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].clone())
        .collect();
    assert_eq!(
        contents,
        [
            marked("be good"),
            json!("hi"),
            json!(null),
            json!("one"),
            json!("two"),
            marked("and me"),
            json!("done"),
            marked("go on"),
        ]
    );
    // In the middle of a turn a result is the end.
    let wire = wire_at(router, "anthropic/claude-opus-4.6", &messages[..5]);
    assert_eq!(wire[4]["content"], marked("two"));
    assert_eq!(wire[1]["content"], marked("hi"));
    for (base_url, model) in [
        (router, "openai/gpt-5.2"),
        ("http://127.0.0.1:1/v1", "anthropic/claude-opus-4.6"),
    ] {
        let wire = wire_at(base_url, model, &messages);
        assert!(
            !wire.to_string().contains("cache_control"),
            "{base_url} {model}"
        );
    }
}

#[test]
fn thoughts_go_back_to_where_they_came_from() {
    let settings = EndpointSettings::new("http://127.0.0.1:1/v1", None, "m");
    let part = |data: Value| AssistantPart::Opaque(OpaquePart::new(settings.provider(), data));
    let elsewhere = OpaquePart::new(
        "chat_completions@other/m",
        json!({"reasoning_content": "no"}),
    );
    let messages = [Message::Assistant {
        parts: vec![
            part(json!({"reasoning_content": "hm", "reasoning_details": [{"data": "x"}]})),
            AssistantPart::Opaque(elsewhere),
            part(json!({"extra_content": {"google": {"thought_signature": "s"}}})),
            calling("a"),
            calling("b"),
        ],
    }];
    let wire = wire(&messages);
    assert_eq!(wire[0]["reasoning_content"], "hm");
    assert_eq!(wire[0]["reasoning_details"], json!([{"data": "x"}]));
    let calls = &wire[0]["tool_calls"];
    assert_eq!(
        calls[0]["extra_content"]["google"]["thought_signature"],
        "s"
    );
    assert_eq!(calls[1].get("extra_content"), None);
}

#[test]
fn mistral_is_given_ids_that_it_takes_and_the_result_has_the_same() {
    let settings = EndpointSettings::new("https://api.mistral.ai/v1", None, "m");
    let messages = [
        Message::user("hi"),
        Message::Assistant {
            parts: vec![calling("call_from_elsewhere")],
        },
        Message::failed_tool(CallId::new("call_from_elsewhere"), "dark"),
    ];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let body: Value = serde_json::from_str(&body(&settings, ask)).unwrap();
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(body["messages"][2]["tool_call_id"], id);
}
