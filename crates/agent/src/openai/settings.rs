//! Where an endpoint is and how it is spoken to.

use std::time::Duration;

use hermetic_types::Secret;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Up to and including `/v1`.
    pub base_url: String,
    /// Absent for a server that asks for none.
    pub key: Option<Secret>,
    pub model: String,
    pub headers: Vec<(String, Secret)>,
    /// A proxy for our own requests, as a URL.
    pub proxy: Option<Secret>,
    pub connect_timeout: Duration,
    /// How long the endpoint may be silent, before the answer and within it.
    pub silence: Duration,
    /// Off for an endpoint that cannot stream.
    pub stream: bool,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f32>,
    pub max_request_bytes: usize,
    pub max_response_bytes: usize,
}

impl Settings {
    pub fn new(base_url: impl Into<String>, key: Option<Secret>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key,
            model: model.into(),
            headers: Vec::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
            stream: true,
            max_output_tokens: None,
            temperature: None,
            max_request_bytes: 32 << 20,
            max_response_bytes: 16 << 20,
        }
    }
}

#[derive(Debug, Error)]
pub enum EndpointError {
    #[error(
        "the base_url with host {host:?} is not the address of an endpoint: expected something like https://host/v1, without name and password"
    )]
    Url { host: String },
    #[error("the header {name:?} cannot be sent")]
    Header { name: String },
    #[error("the key of model {model} holds characters that no header can carry")]
    Key { model: String },
    #[error("the proxy's address cannot be read")]
    Proxy,
    #[error("cannot set up an HTTP client")]
    Client(#[source] reqwest::Error),
}

pub(super) fn endpoint(base_url: &str) -> Result<Url, EndpointError> {
    let parsed = Url::parse(base_url).ok();
    let fits = |url: &Url| {
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain
    };
    let wrong = EndpointError::Url {
        // An address may hold a password; the host is enough to recognise it.
        host: parsed
            .as_ref()
            .and_then(Url::host_str)
            .unwrap_or_default()
            .to_owned(),
    };
    let mut url = parsed.filter(fits).ok_or(wrong)?;
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

pub(super) fn headers(settings: &Settings) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &settings.key {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| {
                EndpointError::Key {
                    model: settings.model.clone(),
                }
            })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &settings.headers {
        let wrong = || EndpointError::Header { name: name.clone() };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
