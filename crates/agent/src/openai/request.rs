//! The request as the endpoint reads it.
//!
//! Written straight from the conversation, which may be long, without a copy of it in between.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::Settings;
use super::content::{Content, of_result, of_user};
use crate::{Ask, CallId, Message, ToolCall, ToolSpec};

pub(super) fn body(settings: &Settings, ask: Ask<'_>) -> String {
    let body = Body {
        model: &settings.model,
        messages: said(ask.messages),
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
    content: Option<Content<'a>>,
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

/// The messages in order. Images of tool results follow in a message of their own, after the last
/// result: this dialect has no place for them in a result, and nothing may come between results.
fn said(messages: &[Message]) -> Vec<Said<'_>> {
    let mut said = Vec::with_capacity(messages.len());
    let mut images = Vec::new();
    for message in messages {
        if !matches!(message, Message::Tool { .. }) {
            said.extend(Content::of_images(std::mem::take(&mut images)).map(Said::of_user));
        }
        said.push(match message {
            Message::System { text } => Said::plain("system", Content::text(text.as_str())),
            Message::User { parts } => Said::of_user(of_user(parts)),
            Message::Assistant { .. } => of_assistant(message),
            Message::Tool { call_id, parts, .. } => Said {
                tool_call_id: Some(call_id),
                ..Said::plain("tool", of_result(parts, &mut images))
            },
        });
    }
    said.extend(Content::of_images(images).map(Said::of_user));
    said
}

/// Parts that only another provider understands have no place here, nor have images that a model made.
fn of_assistant(message: &Message) -> Said<'_> {
    let text: Cow<'_, str> = message.text();
    let tool_calls: Vec<_> = message.tool_calls().map(call).collect();
    let content = (tool_calls.is_empty() || !text.is_empty()).then_some(Content::Text(text));
    Said {
        role: "assistant",
        content,
        tool_call_id: None,
        tool_calls,
    }
}

impl<'a> Said<'a> {
    fn plain(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            content: Some(content),
            tool_call_id: None,
            tool_calls: Vec::new(),
        }
    }

    fn of_user(content: Content<'a>) -> Self {
        Self::plain("user", content)
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

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
