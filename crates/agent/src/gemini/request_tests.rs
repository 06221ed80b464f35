use serde_json::{Value, json};

use super::*;
use crate::OpaquePart;
use crate::endpoint::ApiDialect;

fn settings(model: &str) -> EndpointSettings {
    EndpointSettings::speaking(ApiDialect::Gemini, "https://h", None, model)
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

fn mark(settings: &EndpointSettings, data: Value) -> AssistantPart {
    AssistantPart::Opaque(OpaquePart::new(settings.provider(), data))
}

#[test]
fn signatures_stand_at_the_parts_they_sign() {
    let settings = settings("gemini-3-pro");
    let messages = [
        Message::system("be good"),
        Message::user("hi"),
        Message::Assistant {
            parts: vec![
                AssistantPart::text("I look."),
                mark(&settings, json!({"thoughtSignature": "s1", "id": "g1"})),
                calling("a"),
                calling("b"),
                mark(&settings, json!({"thoughtSignature": "s2"})),
            ],
        },
        Message::tool(CallId::new("a"), "there"),
        Message::failed_tool(CallId::new("b"), "dark"),
    ];
    let wire = wire(&settings, &messages, &[]);
    assert_eq!(
        wire["systemInstruction"],
        json!({"parts": [{"text": "be good"}]})
    );
    assert_eq!(
        wire["contents"],
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "g1", "name": "look", "args": {"at": 1}}, "thoughtSignature": "s1"},
                {"functionCall": {"name": "look", "args": {"at": 1}}},
                {"text": "", "thoughtSignature": "s2"},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "g1", "name": "look", "response": {"output": "there"}}},
                {"functionResponse": {"name": "look", "response": {"error": "dark"}}},
            ]},
        ])
    );
}

#[test]
fn a_call_that_another_model_made_is_marked_as_that_where_signatures_are_wanted() {
    for (model, expected) in [
        ("gemini-3-pro", json!("skip_thought_signature_validator")),
        ("gemini-2.5-flash", Value::Null),
    ] {
        let settings = settings(model);
        let others = OpaquePart::new("gemini@h/another", json!({"thoughtSignature": "s"}));
        let messages = [Message::Assistant {
            parts: vec![AssistantPart::Opaque(others), calling("a"), calling("b")],
        }];
        let parts = &wire(&settings, &messages, &[])["contents"][0]["parts"];
        assert_eq!(parts[0]["thoughtSignature"], expected, "{model}");
        assert_eq!(parts[1]["thoughtSignature"], Value::Null, "{model}");
    }
}

#[test]
fn images_of_results_follow_the_last_result() {
    let image = MediaPart::inline("image/png", b"png").unwrap();
    let result = |id: &str| Message::Tool {
        call_id: CallId::new(id),
        failed: false,
        parts: vec![
            MessagePart::text("there"),
            MessagePart::Image(image.clone()),
        ],
    };
    let messages = [
        Message::Assistant {
            parts: vec![calling("a"), calling("b")],
        },
        result("a"),
        result("b"),
    ];
    let wire = wire(&settings("gemini-2.5-pro"), &messages, &[]);
    let parts = wire["contents"][1]["parts"].as_array().unwrap();
    let kinds: Vec<_> = parts
        .iter()
        .map(|part| part.as_object().unwrap().keys().next().unwrap().as_str())
        .collect();
    let (answer, image) = ("functionResponse", "inlineData");
    assert_eq!(kinds, [answer, answer, image, image]);
    assert_eq!(parts[2]["inlineData"]["mimeType"], "image/png");
}

#[test]
fn schemas_and_efforts_go_out_in_the_form_of_the_generation() {
    let tools = [ToolSpec {
        name: "look".into(),
        description: "looks".into(),
        schema: json!({"type": "object", "additionalProperties": false}).into(),
    }];
    let ask = |model: &str| {
        let mut settings = settings(model);
        settings.effort = Some(ReasoningEffort::High);
        wire(&settings, &[Message::user("hi")], &tools)
    };
    let wire = ask("gemini-2.5-pro");
    let declared = &wire["tools"][0]["functionDeclarations"][0];
    assert_eq!(
        declared["parametersJsonSchema"]["additionalProperties"],
        false
    );
    assert_eq!(
        wire["generationConfig"]["thinkingConfig"],
        json!({"thinkingBudget": 16_384})
    );
    assert_eq!(
        ask("gemini-3-flash")["generationConfig"]["thinkingConfig"],
        json!({"thinkingLevel": "high"})
    );
}

#[test]
fn models_that_cannot_think_or_must_are_asked_as_they_can_be() {
    let asked = |model: &str, effort| {
        let mut settings = settings(model);
        settings.effort = Some(effort);
        let wire = wire(&settings, &[Message::user("hi")], &[]);
        wire["generationConfig"]["thinkingConfig"].clone()
    };
    for model in ["gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it"] {
        assert_eq!(asked(model, ReasoningEffort::High), Value::Null, "{model}");
    }
    let none = ReasoningEffort::None;
    assert_eq!(
        asked("gemini-2.5-pro", none),
        json!({"thinkingBudget": 128})
    );
    assert_eq!(
        asked("gemini-2.5-flash", none),
        json!({"thinkingBudget": 0})
    );
}
