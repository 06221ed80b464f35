//! The request as the endpoint reads it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::endpoint::{EndpointSettings, ReasoningEffort, written};
use crate::tool_names::{arguments_object, usable_name};
use crate::{
    AssistantPart, CallId, MediaPart, MediaSource, Message, MessagePart, ModelRequest, ToolCall,
    ToolSpec,
};

pub(crate) fn body(settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
    let body = GeminiBody {
        system_instruction: system(ask.messages),
        contents: GeminiConversation::new(settings).written(ask.messages),
        tools: tools(ask.tools),
        generation_config: GenerationConfig {
            max_output_tokens: settings.max_output_tokens,
            temperature: settings.temperature,
            thinking_config: thinking(settings),
        },
    };
    written(settings, &body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolDeclarations<'a>>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: Vec<WirePart<'a>>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<std::borrow::Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<GeminiBlob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBlob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: String,
    args: Map<String, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: String,
    response: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDeclarations<'a> {
    function_declarations: Vec<ToolDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    /// The schema as it is; the older `parameters` knows a part of it only.
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
}

/// The conversation as far as it is written.
struct GeminiConversation<'a> {
    provider: String,
    /// Whether a call without a signature is refused.
    wants_signatures: bool,
    contents: Vec<GeminiContent<'a>>,
    /// By which name and id each call is answered.
    calls: HashMap<&'a CallId, (&'a str, Option<&'a str>)>,
    /// Images and files of results, which follow the last of them.
    beside_results: Vec<WirePart<'a>>,
}

/// Google's own word for a call that another model made.
const NOT_SIGNED_HERE: &str = "skip_thought_signature_validator";

impl<'a> GeminiConversation<'a> {
    fn new(settings: &EndpointSettings) -> Self {
        let old = ["gemini-1", "gemini-2", "gemma"];
        Self {
            provider: settings.provider(),
            wants_signatures: !old.iter().any(|old| settings.model.contains(old)),
            contents: Vec::new(),
            calls: HashMap::new(),
            beside_results: Vec::new(),
        }
    }

    fn written(mut self, messages: &'a [Message]) -> Vec<GeminiContent<'a>> {
        for message in messages {
            if !matches!(message, Message::Tool { .. }) {
                self.end_results();
            }
            match message {
                Message::System { .. } => {}
                Message::User { parts } => {
                    let parts = parts.iter().map(WirePart::of).collect();
                    self.say("user", parts);
                }
                Message::Assistant { parts } => {
                    let parts = self.of_assistant(parts);
                    self.say("model", parts);
                }
                Message::Tool {
                    call_id,
                    failed,
                    parts,
                } => self.answer(call_id, *failed, parts),
            }
        }
        self.end_results();
        self.contents
    }

    /// One content for all that one side said before the other did.
    fn say(&mut self, role: &'static str, parts: Vec<WirePart<'a>>) {
        match self.contents.last_mut() {
            _ if parts.is_empty() => {}
            Some(last) if last.role == role => last.parts.extend(parts),
            _ => self.contents.push(GeminiContent { role, parts }),
        }
    }

    /// A signature stands directly before the part that it signs.
    fn of_assistant(&mut self, parts: &'a [AssistantPart]) -> Vec<WirePart<'a>> {
        let mut written: Vec<WirePart<'a>> = Vec::new();
        let mut mark: Option<&'a Value> = None;
        let mut first_call = true;
        for part in parts {
            match part {
                AssistantPart::Opaque(part) => {
                    written.extend(mark.take().map(WirePart::of_lone_signature));
                    mark = part.for_provider(&self.provider);
                }
                AssistantPart::Text { text } => written.push(WirePart {
                    text: Some(text.as_str().into()),
                    thought_signature: mark.take().and_then(signature),
                    ..WirePart::default()
                }),
                AssistantPart::ToolCall(call) => {
                    written.push(self.call(call, mark.take(), first_call));
                    first_call = false;
                }
                AssistantPart::Image(_) => {}
            }
        }
        written.extend(mark.map(WirePart::of_lone_signature));
        written
    }

    /// Of several calls at once only the first has a signature.
    fn call(&mut self, call: &'a ToolCall, mark: Option<&'a Value>, first: bool) -> WirePart<'a> {
        let id = mark.and_then(|mark| mark.get("id")?.as_str());
        self.calls.insert(&call.id, (&call.name, id));
        let unsigned = (first && self.wants_signatures).then_some(NOT_SIGNED_HERE);
        WirePart {
            function_call: Some(FunctionCall {
                id,
                name: usable_name(&call.name),
                args: arguments_object(call),
            }),
            thought_signature: mark.and_then(signature).or(unsigned),
            ..WirePart::default()
        }
    }

    fn answer(&mut self, call: &'a CallId, failed: bool, parts: &'a [MessagePart]) {
        let (name, id) = self.calls.get(call).copied().unwrap_or(("unknown", None));
        let mut texts = Vec::new();
        for part in parts {
            let part = WirePart::of(part);
            match part.text {
                Some(text) => texts.push(text),
                None => self.beside_results.push(part),
            }
        }
        let key = if failed { "error" } else { "output" };
        let part = WirePart {
            function_response: Some(FunctionResponse {
                id,
                name: usable_name(name),
                response: json!({key: texts.join("\n")}),
            }),
            ..WirePart::default()
        };
        self.say("user", vec![part]);
    }

    fn end_results(&mut self) {
        let beside = std::mem::take(&mut self.beside_results);
        self.say("user", beside);
    }
}

impl<'a> WirePart<'a> {
    fn of(part: &'a MessagePart) -> Self {
        let media = match part {
            MessagePart::Text { text } => return Self::text(text.as_str()),
            MessagePart::Image(media) | MessagePart::File(media) => media,
        };
        match blob(media) {
            Some(blob) => Self {
                inline_data: Some(blob),
                ..Self::default()
            },
            None => Self::text(media.described()),
        }
    }

    fn text(text: impl Into<std::borrow::Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A signature whose part said nothing.
    fn of_lone_signature(mark: &'a Value) -> Self {
        Self {
            text: Some("".into()),
            thought_signature: signature(mark),
            ..Self::default()
        }
    }
}

fn signature(mark: &Value) -> Option<&str> {
    mark.get("thoughtSignature")?.as_str()
}

/// Images and PDFs are shown, other files are named.
fn blob(media: &MediaPart) -> Option<GeminiBlob<'_>> {
    let shown = media.media_type.starts_with("image/") || media.media_type == "application/pdf";
    match &media.source {
        MediaSource::Inline(bytes) if shown => Some(GeminiBlob {
            mime_type: &media.media_type,
            data: bytes.as_base64(),
        }),
        _ => None,
    }
}

fn system(messages: &[Message]) -> Option<SystemInstruction<'_>> {
    let texts = messages.iter().filter_map(|message| match message {
        Message::System { text } => Some(WirePart::text(text.as_str())),
        _ => None,
    });
    let parts: Vec<_> = texts.collect();
    (!parts.is_empty()).then_some(SystemInstruction { parts })
}

fn tools<'a>(specs: &'a [ToolSpec]) -> Vec<ToolDeclarations<'a>> {
    if specs.is_empty() {
        return Vec::new();
    }
    let declare = |spec: &'a ToolSpec| ToolDeclaration {
        name: &spec.name,
        description: &spec.description,
        parameters_json_schema: &spec.schema,
    };
    vec![ToolDeclarations {
        function_declarations: specs.iter().map(declare).collect(),
    }]
}

/// Models before 3 are given a number of tokens, later ones a level.
fn thinking(settings: &EndpointSettings) -> Option<Value> {
    let effort = settings.effort?;
    let is = |part: &str| settings.model.contains(part);
    if ["gemini-2.0", "gemini-1", "gemma"].into_iter().any(is) {
        // They refuse to be asked for it.
        return None;
    }
    if is("gemini-2.5-pro") {
        // It cannot be told not to think at all.
        return Some(json!({"thinkingBudget": effort.tokens().max(128)}));
    }
    if is("gemini-2") {
        return Some(json!({"thinkingBudget": effort.tokens()}));
    }
    let level = match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        // Not every model has one in between.
        ReasoningEffort::Medium | ReasoningEffort::High | ReasoningEffort::ExtraHigh => "high",
    };
    Some(json!({"thinkingLevel": level}))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
