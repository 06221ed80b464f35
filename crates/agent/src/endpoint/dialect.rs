//! The wire formats that models are spoken to in.

use serde_json::{Map, Value};

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
        let body = self.own_body(settings, ask);
        if settings.extra_body.is_empty() {
            return body;
        }
        let mut fields: Map<String, Value> = serde_json::from_str(&body).unwrap_or_default();
        fields.extend(settings.extra_body.clone());
        Value::Object(fields).to_string()
    }

    fn own_body(self, settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
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
