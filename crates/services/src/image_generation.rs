//! Pictures from words, by an endpoint that speaks OpenAI's `/images/generations`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::Url;
use serde_json::{Value, json};

use crate::service_client::{ServiceClient, ServiceError, UnusableService, below};

#[derive(Clone, Debug)]
pub struct ImageSettings {
    /// As in `https://host/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// The setting that holds the key, for whoever has to mend it.
    pub key_setting: &'static str,
    pub proxy: Option<UpstreamProxy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageShape {
    Landscape,
    Square,
    Portrait,
}

/// An endpoint that makes pictures.
#[derive(Clone, Debug)]
pub struct ImageService {
    client: ServiceClient,
    url: Url,
    settings: ImageSettings,
}

/// A picture, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedImage {
    pub bytes: Vec<u8>,
}

/// Such endpoints take up to two minutes.
const PATIENCE: Duration = Duration::from_secs(180);
const MOST_BYTES: usize = 24 << 20;

impl ImageShape {
    /// In the words that models are used to.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "landscape" => Self::Landscape,
            "square" => Self::Square,
            "portrait" => Self::Portrait,
            _ => return None,
        })
    }

    fn size(self) -> &'static str {
        match self {
            Self::Landscape => "1536x1024",
            Self::Square => "1024x1024",
            Self::Portrait => "1024x1536",
        }
    }
}

impl ImageService {
    pub fn new(settings: ImageSettings) -> Result<Self, UnusableService> {
        let proxy = settings.proxy.as_ref();
        let key = settings.key_setting;
        Ok(Self {
            client: ServiceClient::new("the image endpoint", key, PATIENCE, MOST_BYTES, proxy)?,
            url: below(&settings.base_url, "images/generations")?,
            settings,
        })
    }

    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// One picture. An endpoint that answers with an address instead is not followed there.
    pub async fn generate(
        &self,
        prompt: &str,
        shape: ImageShape,
    ) -> Result<GeneratedImage, ServiceError> {
        let mut body = json!({
            "model": self.settings.model,
            "prompt": prompt,
            "n": 1,
            "size": shape.size(),
        });
        // The newer ones always send the picture itself and refuse to be asked for it.
        if self.settings.model.starts_with("dall-e") {
            body["response_format"] = "b64_json".into();
        }
        let mut request = self.client.http().post(self.url.clone()).json(&body);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(key.expose());
        }
        let answer = self.client.json(request).await?;
        let picture = answer.pointer("/data/0/b64_json").and_then(Value::as_str);
        let bytes = picture.and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.filter(|bytes| !bytes.is_empty());
        Ok(GeneratedImage {
            bytes: bytes.ok_or_else(|| self.client.unreadable())?,
        })
    }
}
