//! The request as the endpoint reads it.
//!
//! Written straight from the conversation, which may be long, without a copy of it in between.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::content::{MessageContent, of_result, of_user};
use super::reasoning::returned;
use crate::endpoint::{EndpointSettings, ReasoningEffort, written};
use crate::tool_names::{nine_letter_id, usable_arguments, usable_name};
use crate::{AssistantPart, CallId, Message, ModelRequest, ToolCall, ToolSpec};

pub(crate) fn body(settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
    // OpenAI's own thinking models refuse the old name, other servers the new one.
    let renamed =
        settings.base_url.contains("api.openai.com") || settings.base_url.contains(".azure.com");
    let (old_limit, new_limit) = match renamed {
        true => (None, settings.max_output_tokens),
        false => (settings.max_output_tokens, None),
    };
    let provider = settings.provider();
    let wire = MessageWire {
        provider: &provider,
        ids: wire_ids(settings),
        shows_files: settings.takes_files(),
    };
    let mut messages = said(ask.messages, &wire);
    if settings.marks_completions() {
        mark_for_cache(&mut messages);
    }
    let body = CompletionBody {
        model: &settings.model,
        messages,
        stream: settings.stream,
        stream_options: settings.stream.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: ask.tools.iter().map(tool).collect(),
        max_tokens: old_limit,
        max_completion_tokens: new_limit,
        reasoning_effort: settings.effort.map(ReasoningEffort::name),
        temperature: settings.temperature,
    };
    written(settings, &body)
}

/// How messages are written for one endpoint.
struct MessageWire<'a> {
    provider: &'a str,
    ids: WireIds,
    shows_files: bool,
}

/// How the id of a call is written.
type WireIds = fn(&CallId) -> Cow<'_, str>;

/// Mistral takes ids of nine letters and digits and no others.
fn wire_ids(settings: &EndpointSettings) -> WireIds {
    match settings.base_url.contains("://api.mistral.ai") {
        true => nine_letter_id,
        false => |id| id.as_str().into(),
    }
}

#[derive(Serialize)]
struct CompletionBody<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<RequestTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'static str,
    content: Option<MessageContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RequestCall<'a>>,
    /// What the provider wants back of the model's thoughts.
    #[serde(flatten)]
    thoughts: Map<String, Value>,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: String,
    arguments: &'a str,
}

#[derive(Serialize)]
struct RequestTool<'a> {
    r#type: &'static str,
    function: OfferedFunction<'a>,
}

#[derive(Serialize)]
struct OfferedFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// The messages in order. Images and files of tool results follow in a message of their own, after the last
/// result: this dialect has no place for them in a result, and nothing may come between results.
fn said<'a>(messages: &'a [Message], wire: &MessageWire<'_>) -> Vec<RequestMessage<'a>> {
    let mut said = Vec::with_capacity(messages.len());
    let mut shown = Vec::new();
    for message in messages {
        if !matches!(message, Message::Tool { .. }) {
            said.extend(
                MessageContent::of_shown(std::mem::take(&mut shown)).map(RequestMessage::of_user),
            );
        }
        said.push(match message {
            Message::System { text } => {
                RequestMessage::plain("system", MessageContent::text(text.as_str()))
            }
            Message::User { parts } => RequestMessage::of_user(of_user(parts, wire.shows_files)),
            Message::Assistant { parts } => of_assistant(message, parts, wire),
            Message::Tool { call_id, parts, .. } => RequestMessage {
                tool_call_id: Some((wire.ids)(call_id)),
                ..RequestMessage::plain("tool", of_result(parts, wire.shows_files, &mut shown))
            },
        });
    }
    said.extend(MessageContent::of_shown(shown).map(RequestMessage::of_user));
    said
}

/// Four marks are allowed. The system prompt is the same for all requests of a conversation, the last message is
/// where the next request goes on, and the end of what was said before the last answer is where this one does.
fn mark_for_cache(messages: &mut [RequestMessage<'_>]) {
    let mut left = 2;
    let mut is_end = true;
    for message in messages.iter_mut().rev() {
        let is_marked = match message.role {
            "system" => true,
            "assistant" => false,
            _ => is_end && left > 0,
        };
        is_end = message.role == "assistant";
        if is_marked && let Some(content) = message.content.take() {
            message.content = Some(content.marked_for_cache());
            left -= usize::from(message.role != "system");
        }
    }
}

/// Parts that only another provider understands have no place here, nor have images that a model made.
fn of_assistant<'a>(
    message: &'a Message,
    parts: &'a [AssistantPart],
    wire: &MessageWire<'_>,
) -> RequestMessage<'a> {
    let text: Cow<'_, str> = message.text();
    let tool_calls = calls(parts, wire);
    // Beside calls an empty text is left out, and without calls it is kept: a message has to have
    // one of the two.
    let content = (tool_calls.is_empty() || !text.is_empty()).then_some(MessageContent::Text(text));
    RequestMessage {
        role: "assistant",
        content,
        tool_call_id: None,
        tool_calls,
        thoughts: returned(parts, wire.provider),
    }
}

/// The calls, each with what its provider wants back beside it: that stands directly before it.
fn calls<'a>(parts: &'a [AssistantPart], wire: &MessageWire<'_>) -> Vec<RequestCall<'a>> {
    let mut calls = Vec::new();
    let mut beside = None;
    for part in parts {
        match part {
            AssistantPart::Opaque(part) => {
                let data = part.for_provider(wire.provider);
                beside = data.and_then(|data| data.get("extra_content"));
            }
            AssistantPart::ToolCall(made) => calls.push(call(made, beside.take(), wire.ids)),
            AssistantPart::Text { .. } | AssistantPart::Image(_) => beside = None,
        }
    }
    calls
}

impl<'a> RequestMessage<'a> {
    fn plain(role: &'static str, content: MessageContent<'a>) -> Self {
        Self {
            role,
            content: Some(content),
            tool_call_id: None,
            tool_calls: Vec::new(),
            thoughts: Map::new(),
        }
    }

    fn of_user(content: MessageContent<'a>) -> Self {
        Self::plain("user", content)
    }
}

fn call<'a>(call: &'a ToolCall, extra_content: Option<&'a Value>, ids: WireIds) -> RequestCall<'a> {
    RequestCall {
        id: ids(&call.id),
        r#type: "function",
        function: CalledFunction {
            name: usable_name(&call.name),
            arguments: usable_arguments(call),
        },
        extra_content,
    }
}

fn tool(spec: &ToolSpec) -> RequestTool<'_> {
    RequestTool {
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
