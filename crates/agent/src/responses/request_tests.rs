use serde_json::{Value, json};

use super::*;
use crate::endpoint::ApiDialect;
use crate::{CallId, OpaquePart, ToolCall};

fn settings(model: &str) -> EndpointSettings {
    EndpointSettings::speaking(ApiDialect::Responses, "https://h/v1", None, model)
}

fn wire(settings: &EndpointSettings, messages: &[Message]) -> Value {
    let ask = ModelRequest {
        messages,
        tools: &[],
    };
    serde_json::from_str(&body(settings, ask)).unwrap()
}

#[test]
fn the_conversation_is_a_list_of_items_with_thoughts_as_they_came() {
    let settings = settings("gpt-5.2");
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"});
    let call = ToolCall {
        id: CallId::new("c1"),
        name: "look".to_owned(),
        arguments: "{\"at\": 1}".to_owned(),
    };
    let others = OpaquePart::new("responses@h/gpt-5", json!({"type": "reasoning"}));
    let messages = [
        Message::system("be good"),
        Message::user("hi"),
        Message::Assistant {
            parts: vec![
                AssistantPart::Opaque(OpaquePart::new(settings.provider(), thought.clone())),
                AssistantPart::Opaque(others),
                AssistantPart::text("I look."),
                AssistantPart::ToolCall(call),
            ],
        },
        Message::tool(CallId::new("c1"), "there"),
    ];
    let wire = wire(&settings, &messages);
    assert_eq!(wire["instructions"], "be good");
    assert_eq!(wire["store"], false);
    assert_eq!(wire["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(
        wire["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            thought,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1}"},
            {"type": "function_call_output", "call_id": "c1", "output": "there"},
        ])
    );
}

#[test]
fn a_model_without_thoughts_is_not_asked_for_them() {
    let wire = wire(&settings("gpt-4o"), &[Message::user("hi")]);
    assert_eq!(wire.get("include"), None);
}

#[test]
fn images_and_pdfs_are_shown_also_in_results() {
    let image = MessagePart::Image(MediaPart::inline("image/png", b"png").unwrap());
    let pdf = MessagePart::File(MediaPart::inline("application/pdf", b"png").unwrap());
    let table = MessagePart::File(MediaPart::inline("text/csv", b"png").unwrap());
    let result = Message::Tool {
        call_id: CallId::new("c"),
        failed: false,
        parts: vec![MessagePart::text("there"), image, pdf, table],
    };
    let wire = wire(&settings("m"), &[result]);
    assert_eq!(
        wire["input"][0]["output"],
        json!([
            {"type": "input_text", "text": "there"},
            {"type": "input_image", "image_url": "data:image/png;base64,cG5n"},
            {"type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,cG5n"},
            {"type": "input_text", "text": "[text/csv, without a name, not shown]"},
        ])
    );
}
