//! Text to speech, by an endpoint that speaks OpenAI's `/audio/speech`.

use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::Url;
use serde_json::json;

use crate::service_client::{ServiceClient, ServiceError, UnusableService, below};

#[derive(Clone, Debug)]
pub struct SpeechSettings {
    /// As in `https://host/v1`.
    pub base_url: String,
    pub model: String,
    /// As the endpoint names it.
    pub voice: String,
    pub key: Option<Secret>,
    /// The setting that holds the key, for whoever has to mend it.
    pub key_setting: &'static str,
    pub proxy: Option<UpstreamProxy>,
}

/// An endpoint that speaks.
#[derive(Clone, Debug)]
pub struct SpeechService {
    client: ServiceClient,
    url: Url,
    settings: SpeechSettings,
}

/// Some minutes of speech take as long as a minute.
const PATIENCE: Duration = Duration::from_secs(120);
const MOST_BYTES: usize = 24 << 20;

impl SpeechService {
    /// The longest text that such endpoints take.
    pub const MOST_CHARS: usize = 4096;

    pub fn new(settings: SpeechSettings) -> Result<Self, UnusableService> {
        let proxy = settings.proxy.as_ref();
        let key = settings.key_setting;
        Ok(Self {
            client: ServiceClient::new("the speech endpoint", key, PATIENCE, MOST_BYTES, proxy)?,
            url: below(&settings.base_url, "audio/speech")?,
            settings,
        })
    }

    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// The text as MP3.
    pub async fn speak(&self, text: &str) -> Result<Vec<u8>, ServiceError> {
        let body = json!({
            "model": self.settings.model,
            "voice": self.settings.voice,
            "input": text,
            "response_format": "mp3",
        });
        let mut request = self.client.http().post(self.url.clone()).json(&body);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(key.expose());
        }
        let audio = self.client.bytes(request).await?;
        match is_mp3(&audio) {
            true => Ok(audio),
            false => Err(self.client.unreadable()),
        }
    }
}

/// A tag, or the first eleven bits of a frame.
fn is_mp3(bytes: &[u8]) -> bool {
    match bytes {
        [b'I', b'D', b'3', ..] => true,
        [0xff, second, ..] => second & 0xe0 == 0xe0,
        _ => false,
    }
}
