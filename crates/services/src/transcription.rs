//! Speech to text, by an endpoint that speaks OpenAI's `/audio/transcriptions`.

use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::Url;
use reqwest::multipart::{Form, Part};
use serde_json::Value;

use crate::service_client::{ServiceClient, ServiceError, UnusableService, below, bounded};

#[derive(Clone, Debug)]
pub struct TranscriptionSettings {
    /// As in `https://host/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// The setting that holds the key, for whoever has to mend it.
    pub key_setting: &'static str,
    /// As in `en`; the endpoint finds out where nobody says.
    pub language: Option<String>,
    pub proxy: Option<UpstreamProxy>,
}

/// An endpoint that writes down what is said in a recording.
#[derive(Clone, Debug)]
pub struct TranscriptionService {
    client: ServiceClient,
    url: Url,
    settings: TranscriptionSettings,
}

const PATIENCE: Duration = Duration::from_secs(60);
const MOST_BYTES: usize = 1 << 20;
/// An hour of fast speech.
const MOST_CHARS: usize = 60_000;

impl TranscriptionService {
    /// The largest recording that such endpoints take.
    pub const MOST_AUDIO: usize = 25 << 20;

    pub fn new(settings: TranscriptionSettings) -> Result<Self, UnusableService> {
        let proxy = settings.proxy.as_ref();
        let key = settings.key_setting;
        Ok(Self {
            client: ServiceClient::new(
                "the transcription endpoint",
                key,
                PATIENCE,
                MOST_BYTES,
                proxy,
            )?,
            url: below(&settings.base_url, "audio/transcriptions")?,
            settings,
        })
    }

    /// What is said in a recording, as somebody else's words. The endpoint knows its format by its file name.
    pub async fn transcribe(&self, audio: Vec<u8>, name: &str) -> Result<String, ServiceError> {
        let file = Part::bytes(audio).file_name(name.to_owned());
        let mut form = Form::new()
            .part("file", file)
            .text("model", self.settings.model.clone())
            .text("response_format", "json");
        if let Some(language) = &self.settings.language {
            form = form.text("language", language.clone());
        }
        let mut request = self.client.http().post(self.url.clone()).multipart(form);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(key.expose());
        }
        let answer = self.client.json(request).await?;
        let text = answer.get("text").and_then(Value::as_str);
        let text = text.ok_or_else(|| self.client.unreadable())?;
        Ok(bounded(text.trim(), MOST_CHARS))
    }
}
