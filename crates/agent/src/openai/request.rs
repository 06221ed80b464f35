//! The request as the endpoint reads it.

use serde_json::{Value, json};

use super::Settings;
use crate::{Ask, Message, ToolCall, ToolSpec};

pub(super) fn body(settings: &Settings, ask: Ask<'_>) -> String {
    let mut body = json!({
        "model": settings.model,
        "messages": ask.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": settings.stream,
    });
    if settings.stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    if !ask.tools.is_empty() {
        body["tools"] = ask.tools.iter().map(tool).collect();
    }
    if let Some(most) = settings.max_output_tokens {
        body["max_tokens"] = json!(most);
    }
    if let Some(temperature) = settings.temperature {
        body["temperature"] = json!(temperature);
    }
    body.to_string()
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, tool_calls } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, tool_calls } => json!({
            "role": "assistant",
            "content": (!text.is_empty()).then_some(text),
            "tool_calls": tool_calls.iter().map(call).collect::<Vec<_>>(),
        }),
        Message::Tool { call_id, content } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
    }
}

fn call(call: &ToolCall) -> Value {
    // Some endpoints parse the arguments of the past again and refuse what is not JSON.
    let is_json =
        serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    let arguments = if is_json { &*call.arguments } else { "{}" };
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": usable_name(&call.name), "arguments": arguments},
    })
}

/// A name the model made up may break the endpoint's own rules, and would then spoil every request
/// that follows.
fn usable_name(name: &str) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
    let name: String = name.chars().filter(plain).take(64).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.schema,
        },
    })
}
