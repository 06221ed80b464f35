//! Services of others, from the configuration: who searches, who writes down what is said, who speaks, who makes pictures.

use hermetic_config::{Config, SearchBackend};
use hermetic_services::{
    ImageService, ImageSettings, SearchProvider, SearchService, SearchSettings, SpeechService,
    SpeechSettings, TranscriptionService, TranscriptionSettings,
};
use hermetic_tools::{WebSettings, WebTools};

pub(crate) fn tools(config: &Config) -> WebTools {
    let settings = WebSettings {
        page_chars: config.web().page_chars,
        ..WebSettings::default()
    };
    WebTools::new(search(config), settings)
}

/// Nothing where nobody is configured, or somebody who cannot be asked; that is logged.
fn search(config: &Config) -> Option<SearchService> {
    let wanted = config.web().search.as_ref()?;
    let provider = match wanted.backend {
        SearchBackend::SearXng => SearchProvider::SearXng,
        SearchBackend::Brave => SearchProvider::Brave,
        SearchBackend::Tavily => SearchProvider::Tavily,
        SearchBackend::Exa => SearchProvider::Exa,
    };
    let usual = provider.usual_address().map(str::to_owned);
    let service = SearchService::new(SearchSettings {
        provider,
        base_url: wanted.base_url.clone().or(usual)?,
        key: wanted.key.clone(),
        proxy: config.gateway().proxy.clone(),
    });
    let unusable = |error| tracing::error!(%error, "there is no web_search");
    service.map_err(unusable).ok()
}

/// Who writes voice messages down, if somebody does.
pub(crate) fn transcription(config: &Config) -> Option<TranscriptionService> {
    let wanted = config.speech().endpoint.as_ref()?;
    let service = TranscriptionService::new(TranscriptionSettings {
        base_url: wanted.base_url.clone(),
        model: wanted.model.clone(),
        key: wanted.key.clone(),
        key_setting: wanted.key_setting,
        language: wanted.language.clone(),
        proxy: config.gateway().proxy.clone(),
    });
    let unusable = |error| tracing::error!(%error, "voice messages stay files");
    service.map_err(unusable).ok()
}

/// Who speaks, if somebody does.
pub(crate) fn speech(config: &Config) -> Option<SpeechService> {
    let wanted = config.spoken()?;
    let service = SpeechService::new(SpeechSettings {
        base_url: wanted.base_url.clone(),
        model: wanted.model.clone(),
        voice: wanted.voice.clone(),
        key: wanted.key.clone(),
        key_setting: "tts.openai.api_key or VOICE_TOOLS_OPENAI_KEY",
        proxy: config.gateway().proxy.clone(),
    });
    let unusable = |error| tracing::error!(%error, "nobody speaks");
    service.map_err(unusable).ok()
}

/// Who makes pictures, if somebody does.
pub(crate) fn images(config: &Config) -> Option<ImageService> {
    let wanted = config.images()?;
    let service = ImageService::new(ImageSettings {
        base_url: wanted.base_url.clone(),
        model: wanted.model.clone(),
        key: wanted.key.clone(),
        key_setting: "image_gen.openai.api_key or OPENAI_API_KEY",
        proxy: config.gateway().proxy.clone(),
    });
    let unusable = |error| tracing::error!(%error, "nobody makes pictures");
    service.map_err(unusable).ok()
}
