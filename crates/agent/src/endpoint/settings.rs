//! Where an endpoint is and how it is spoken to.

use std::fmt;
use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use thiserror::Error;

use super::ApiDialect;
use crate::TokenPrice;

const OPENROUTER: &str = "openrouter.ai";

#[derive(Clone)]
pub struct EndpointSettings {
    pub dialect: ApiDialect,
    /// As the vendor documents it, with or without `/v1`.
    pub base_url: String,
    /// Sent with every request, such as Azure's `api-version`.
    pub query: Vec<(String, String)>,
    /// Absent for a server that asks for none.
    pub key: Option<Secret>,
    pub key_header: KeyHeader,
    pub model: String,
    pub headers: Vec<(String, Secret)>,
    /// Fields that are sent along with every request and beat ours.
    pub extra_body: Map<String, Value>,
    /// The proxy that requests to the model go through.
    pub proxy: Option<UpstreamProxy>,
    pub connect_timeout: Duration,
    /// How long the endpoint may be silent, before the answer and within it.
    pub silence: Duration,
    /// Off for an endpoint that cannot stream.
    pub stream: bool,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f32>,
    /// How much the model thinks before it speaks; the provider's own way where nobody says.
    pub effort: Option<ReasoningEffort>,
    /// Whether prompts are marked for the provider's cache, where its dialect has marks.
    pub cache_prompts: bool,
    /// What its tokens cost, for answers that do not say it themselves.
    pub price: Option<TokenPrice>,
    pub max_request_bytes: usize,
    pub max_response_bytes: usize,
}

/// The header that carries the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer …`
    Bearer,
    /// The key alone, in this header.
    Named(&'static str),
}

/// How much a model thinks, in Hermes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    ExtraHigh,
}

impl EndpointSettings {
    /// An endpoint for chat completions, which most servers speak.
    pub fn new(base_url: impl Into<String>, key: Option<Secret>, model: impl Into<String>) -> Self {
        Self::speaking(ApiDialect::ChatCompletions, base_url, key, model)
    }

    pub fn speaking(
        dialect: ApiDialect,
        base_url: impl Into<String>,
        key: Option<Secret>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            dialect,
            base_url: base_url.into(),
            query: Vec::new(),
            key,
            key_header: dialect.key_header(),
            model: model.into(),
            headers: Vec::new(),
            extra_body: Map::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
            stream: true,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            cache_prompts: true,
            price: None,
            max_request_bytes: 32 << 20,
            max_response_bytes: 16 << 20,
        }
    }

    /// No event of a stream is larger: it is kept as text, as JSON and as what that means.
    pub(crate) fn max_event_bytes(&self) -> usize {
        self.max_response_bytes.min(4 << 20)
    }

    /// Whether files are part of what is sent. Of the many servers that speak chat completions these are known
    /// to understand OpenAI's part for them; others refuse a request that holds it.
    pub(crate) fn takes_files(&self) -> bool {
        match self.dialect {
            ApiDialect::ChatCompletions => self.is_at("api.openai.com") || self.is_at(OPENROUTER),
            ApiDialect::Responses | ApiDialect::AnthropicMessages | ApiDialect::Gemini => true,
        }
    }

    /// Whether chat completions carry Anthropic's marks for its cache. OpenRouter hands them on to Claude, for
    /// which nothing is cached without them.
    pub(crate) fn marks_completions(&self) -> bool {
        self.cache_prompts && self.is_at(OPENROUTER) && self.model.contains("claude")
    }

    fn is_at(&self, host: &str) -> bool {
        let url = reqwest::Url::parse(&self.base_url).ok();
        url.is_some_and(|url| url.host_str() == Some(host))
    }

    /// Whose parts these are that come back untouched. A signature of one model is refused by another,
    /// and the same wire at another host is another provider.
    pub(crate) fn provider(&self) -> String {
        let host = reqwest::Url::parse(&self.base_url).ok();
        let host = host.as_ref().and_then(|url| url.host_str());
        format!(
            "{}@{}/{}",
            self.dialect.name(),
            host.unwrap_or_default(),
            self.model
        )
    }
}

/// What is sent along may hold a credential.
impl fmt::Debug for EndpointSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSettings")
            .field("dialect", &self.dialect)
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl ReasoningEffort {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        use ReasoningEffort::{ExtraHigh, High, Low, Medium, Minimal, None};
        [None, Minimal, Low, Medium, High, ExtraHigh]
            .into_iter()
            .find(|effort| effort.name() == name)
    }

    /// Tokens of thought, for models that are given a number: the shares of a window of 32,000 that
    /// Hermes uses.
    pub(crate) fn tokens(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal => 1024,
            Self::Low => 4096,
            Self::Medium => 8192,
            Self::High => 16_384,
            Self::ExtraHigh => 24_576,
        }
    }
}

#[derive(Debug, Error)]
pub enum ModelEndpointError {
    #[error(
        "the base_url with host {host:?} is not the address of an endpoint: expected something like https://host/v1, without name and password"
    )]
    Url { host: String },
    #[error("the header {name:?} cannot be sent")]
    Header { name: String },
    #[error("the key of model {model} holds characters that no header can carry")]
    Key { model: String },
    #[error("cannot set up an HTTP client")]
    Client(#[source] reqwest::Error),
}

pub(super) fn headers(settings: &EndpointSettings) -> Result<HeaderMap, ModelEndpointError> {
    let mut headers = HeaderMap::new();
    if settings.dialect == ApiDialect::AnthropicMessages {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = &settings.key {
        let (name, value) = match settings.key_header {
            KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            KeyHeader::Named(name) => (HeaderName::from_static(name), key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| ModelEndpointError::Key {
            model: settings.model.clone(),
        })?;
        // So that no debug output of the client shows it.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &settings.headers {
        let wrong = || ModelEndpointError::Header { name: name.clone() };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
