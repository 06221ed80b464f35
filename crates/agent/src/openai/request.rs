//! The request as the endpoint reads it.
//!
//! Written straight from the conversation, which may be long, without a copy of it in between.

use serde::Serialize;
use serde_json::Value;

use super::Settings;
use crate::{Ask, CallId, Message, ToolCall, ToolSpec};

pub(super) fn body(settings: &Settings, ask: Ask<'_>) -> String {
    let body = Body {
        model: &settings.model,
        messages: ask.messages.iter().map(said).collect(),
        stream: settings.stream,
        stream_options: settings.stream.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: ask.tools.iter().map(tool).collect(),
        max_tokens: settings.max_output_tokens,
        temperature: settings.temperature,
    };
    // Strings, numbers and values that were JSON before always serialise.
    serde_json::to_string(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a CallId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a CallId,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: String,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: OfferedFunction<'a>,
}

#[derive(Serialize)]
struct OfferedFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

fn said(message: &Message) -> Said<'_> {
    let plain = |role, text| Said {
        role,
        content: Some(text),
        tool_call_id: None,
        tool_calls: Vec::new(),
    };
    match message {
        Message::System { text } => plain("system", text.as_str()),
        Message::User { text } => plain("user", text.as_str()),
        Message::Assistant { text, tool_calls } => Said {
            role: "assistant",
            content: (tool_calls.is_empty() || !text.is_empty()).then_some(text.as_str()),
            tool_call_id: None,
            tool_calls: tool_calls.iter().map(call).collect(),
        },
        Message::Tool { call_id, content } => Said {
            tool_call_id: Some(call_id),
            ..plain("tool", content.as_str())
        },
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    // Some endpoints parse the arguments of the past again and refuse what is not JSON.
    let is_json =
        serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    Call {
        id: &call.id,
        r#type: "function",
        function: CalledFunction {
            name: usable_name(&call.name),
            arguments: if is_json { &call.arguments } else { "{}" },
        },
    }
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

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: OfferedFunction {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
        },
    }
}
