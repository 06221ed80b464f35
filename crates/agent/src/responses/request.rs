//! The request as the endpoint reads it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::endpoint::{EndpointSettings, ReasoningEffort, written};
use crate::tool_names::{plain_id, usable_arguments, usable_name};
use crate::{AssistantPart, MediaPart, MediaSource, Message, MessagePart, ModelRequest, ToolSpec};

pub(crate) fn body(settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
    let provider = settings.provider();
    let body = ResponsesBody {
        model: &settings.model,
        instructions: instructions(ask.messages),
        input: ask
            .messages
            .iter()
            .flat_map(|message| items(message, &provider))
            .collect(),
        tools: ask.tools.iter().map(tool).collect(),
        stream: settings.stream,
        store: false,
        include: if reasons(&settings.model) {
            vec!["reasoning.encrypted_content"]
        } else {
            Vec::new()
        },
        reasoning: settings.effort.map(|effort| ReasoningSettings {
            effort: ReasoningEffort::name(effort),
        }),
        max_output_tokens: settings.max_output_tokens,
        temperature: settings.temperature,
    };
    written(settings, &body)
}

#[derive(Serialize)]
struct ResponsesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: Cow<'a, str>,
    input: Vec<ResponsesItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OfferedTool<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct ReasoningSettings {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesItem<'a> {
    Ours(OurItem<'a>),
    /// As the provider made it.
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OurItem<'a> {
    Message {
        role: &'static str,
        content: Vec<ContentPart<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: String,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResponsesOutput<'a>,
    },
}

/// Text goes out as one string, which every server of this dialect reads.
#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesOutput<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        image_url: String,
    },
    InputFile {
        filename: &'a str,
        file_data: String,
    },
}

#[derive(Serialize)]
struct OfferedTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// The strict way forbids what our schemas have, such as fields that may be left out.
    strict: bool,
}

fn instructions(messages: &[Message]) -> Cow<'_, str> {
    let mut texts = messages.iter().filter_map(|message| match message {
        Message::System { text } => Some(text.as_str()),
        _ => None,
    });
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |so_far, next| format!("{so_far}\n\n{next}").into())
}

fn items<'a>(message: &'a Message, provider: &str) -> Vec<ResponsesItem<'a>> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::User { parts } => vec![ResponsesItem::Ours(OurItem::Message {
            role: "user",
            content: parts.iter().map(content_part).collect(),
        })],
        Message::Assistant { parts } => parts
            .iter()
            .filter_map(|part| of_assistant(part, provider))
            .collect(),
        Message::Tool { call_id, parts, .. } => {
            vec![ResponsesItem::Ours(OurItem::FunctionCallOutput {
                call_id: plain_id(call_id),
                output: output(parts),
            })]
        }
    }
}

/// Nothing for what only another provider understands, nor for images that a model made.
fn of_assistant<'a>(part: &'a AssistantPart, provider: &str) -> Option<ResponsesItem<'a>> {
    Some(match part {
        AssistantPart::Text { text } if text.is_empty() => return None,
        AssistantPart::Text { text } => ResponsesItem::Ours(OurItem::Message {
            role: "assistant",
            content: vec![ContentPart::OutputText { text }],
        }),
        AssistantPart::ToolCall(call) => ResponsesItem::Ours(OurItem::FunctionCall {
            call_id: plain_id(&call.id),
            name: usable_name(&call.name),
            arguments: usable_arguments(call),
        }),
        AssistantPart::Opaque(part) => ResponsesItem::Opaque(part.for_provider(provider)?),
        AssistantPart::Image(_) => return None,
    })
}

fn output(parts: &[MessagePart]) -> ResponsesOutput<'_> {
    let parts: Vec<_> = parts.iter().map(content_part).collect();
    let text_only = parts
        .iter()
        .all(|part| matches!(part, ContentPart::InputText { .. }));
    if !text_only {
        return ResponsesOutput::Parts(parts);
    }
    let mut texts = parts.into_iter().filter_map(|part| match part {
        ContentPart::InputText { text } => Some(text),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    ResponsesOutput::Text(texts.fold(first, |so_far, next| format!("{so_far}\n{next}").into()))
}

fn content_part(part: &MessagePart) -> ContentPart<'_> {
    let described = match part {
        MessagePart::Text { text } => Cow::Borrowed(text.as_str()),
        MessagePart::Image(image) => match data_url(image) {
            Some(image_url) => return ContentPart::InputImage { image_url },
            None => image.described().into(),
        },
        MessagePart::File(file) => match data_url(file) {
            Some(file_data) if file.media_type == "application/pdf" => {
                return ContentPart::InputFile {
                    filename: file.name.as_deref().unwrap_or("file.pdf"),
                    file_data,
                };
            }
            _ => file.described().into(),
        },
    };
    ContentPart::InputText { text: described }
}

fn data_url(media: &MediaPart) -> Option<String> {
    match &media.source {
        MediaSource::Inline(bytes) => Some(format!(
            "data:{};base64,{}",
            media.media_type,
            bytes.as_base64()
        )),
        MediaSource::Workspace(_) => None,
    }
}

fn tool(spec: &ToolSpec) -> OfferedTool<'_> {
    OfferedTool {
        r#type: "function",
        name: &spec.name,
        description: &spec.description,
        parameters: &spec.schema,
        strict: false,
    }
}

/// Whether the model has thoughts to encrypt. Those that have none refuse to be asked for them.
fn reasons(model: &str) -> bool {
    const WITHOUT: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt", "-chat"];
    !WITHOUT.iter().any(|name| model.contains(name))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
