//! The wire formats that models are spoken to in.

use serde::Serialize;
use serde_json::Value;

use crate::answer_reader::AnswerReader;
use crate::endpoint::{EndpointSettings, KeyHeader};
use crate::{ModelRequest, anthropic, chat_completions, gemini, responses};

/// A wire format. Which one an endpoint speaks is written down; it is never guessed from an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApiDialect {
    /// OpenAI's chat completions, spoken by most servers.
    #[default]
    ChatCompletions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    AnthropicMessages,
    /// Gemini's `generateContent`.
    Gemini,
}

impl ApiDialect {
    pub const ALL: [Self; 4] = [
        Self::ChatCompletions,
        Self::Responses,
        Self::AnthropicMessages,
        Self::Gemini,
    ];

    /// Its name in the configuration, as in `api_mode: anthropic_messages`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Responses => "responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Gemini => "gemini",
        }
    }

    /// The dialect of that name, also by the names Hermes has for it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "codex_responses" | "openai_responses" => Some(Self::Responses),
            "anthropic" | "messages" => Some(Self::AnthropicMessages),
            "openai" | "chat" => Some(Self::ChatCompletions),
            "google" | "gemini_native" => Some(Self::Gemini),
            _ => Self::ALL.into_iter().find(|dialect| dialect.name() == name),
        }
    }

    /// Where the vendor expects the key.
    pub fn key_header(self) -> KeyHeader {
        match self {
            Self::ChatCompletions | Self::Responses => KeyHeader::Bearer,
            Self::AnthropicMessages => KeyHeader::Named("x-api-key"),
            Self::Gemini => KeyHeader::Named("x-goog-api-key"),
        }
    }

    pub(super) fn body(self, settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
        match self {
            Self::ChatCompletions => chat_completions::body(settings, ask),
            Self::Responses => responses::body(settings, ask),
            Self::AnthropicMessages => anthropic::body(settings, ask),
            Self::Gemini => gemini::body(settings, ask),
        }
    }

    pub(super) fn reader(self, settings: &EndpointSettings) -> Box<dyn AnswerReader + Send + '_> {
        match self {
            Self::ChatCompletions => {
                Box::new(chat_completions::ChatCompletionsReader::new(settings))
            }
            Self::Responses => Box::new(responses::ResponsesReader::new(settings)),
            Self::AnthropicMessages => Box::new(anthropic::AnthropicReader::new(settings)),
            Self::Gemini => Box::new(gemini::GeminiReader::new(settings)),
        }
    }
}

/// A request as text, with the fields that the configuration adds to it. Not by way of text that is read
/// again: a conversation may be nested deeper than is read.
pub(crate) fn written(settings: &EndpointSettings, body: &impl Serialize) -> String {
    // Strings, numbers and values that were JSON before always serialise.
    if settings.extra_body.is_empty() {
        return serde_json::to_string(body).unwrap_or_default();
    }
    let mut body = serde_json::to_value(body).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.extend(settings.extra_body.clone());
    }
    body.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{AssistantPart, CallId, Message, OpaquePart, ToolCall};

    #[test]
    fn deep_arguments_do_not_empty_a_request_with_fields_of_ones_own() {
        let nested = format!("{}1{}", "[".repeat(120), "]".repeat(120));
        for dialect in ApiDialect::ALL {
            let mut settings = EndpointSettings::speaking(dialect, "http://h", None, "m");
            settings.extra_body.insert("mine".to_owned(), json!(1));
            let data = serde_json::from_str(&nested).expect("JSON");
            let call = ToolCall {
                id: CallId::new("a"),
                name: "t".to_owned(),
                arguments: format!(r#"{{"x":{nested}}}"#),
            };
            let parts = vec![
                AssistantPart::Opaque(OpaquePart::new(settings.provider(), data)),
                AssistantPart::ToolCall(call),
            ];
            let messages = [Message::user("the question"), Message::Assistant { parts }];
            let ask = ModelRequest {
                messages: &messages,
                tools: &[],
            };
            let body = dialect.body(&settings, ask);
            assert!(body.contains("the question"), "{dialect:?}: {body}");
            assert!(body.contains(r#""mine":1"#), "{dialect:?}: {body}");
        }
    }
}
