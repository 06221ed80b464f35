//! Who searches, who writes down what is said, who speaks, who makes pictures.

use hermetic_types::Secret;

use super::pick::SettingPicker;
use crate::problem::ConfigProblem;

#[derive(Clone, Debug)]
pub struct WebConfig {
    pub search: Option<SearchConfig>,
    /// Characters of one page that are shown.
    pub page_chars: usize,
}

/// A provider of search, with what it needs.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    pub backend: SearchBackend,
    /// Another address than its own.
    pub base_url: Option<String>,
    pub key: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchBackend {
    SearXng,
    Brave,
    Tavily,
    Exa,
}

/// Who writes down voice messages.
#[derive(Clone, Debug)]
pub struct SpeechConfig {
    pub endpoint: Option<SpeechEndpoint>,
    pub echo_transcripts: bool,
}

#[derive(Clone, Debug)]
pub struct SpeechEndpoint {
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// Where the key is written.
    pub key_setting: &'static str,
    pub language: Option<String>,
}

/// Who speaks.
#[derive(Clone, Debug)]
pub struct SpokenConfig {
    pub base_url: String,
    pub model: String,
    pub voice: String,
    pub key: Option<Secret>,
}

/// Who makes pictures.
#[derive(Clone, Debug)]
pub struct ImagesConfig {
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
}

/// As Hermes looks for a key where nobody chose.
const PREFERENCE: [SearchBackend; 4] = [
    SearchBackend::Tavily,
    SearchBackend::Exa,
    SearchBackend::SearXng,
    SearchBackend::Brave,
];

const GROQ: &str = "https://api.groq.com/openai/v1";

impl SearchBackend {
    fn named(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "searxng" => Self::SearXng,
            "brave" | "brave-free" => Self::Brave,
            "tavily" => Self::Tavily,
            "exa" => Self::Exa,
            _ => return None,
        })
    }

    fn variable(self) -> &'static str {
        match self {
            Self::SearXng => "SEARXNG_URL",
            Self::Brave => "BRAVE_SEARCH_API_KEY",
            Self::Tavily => "TAVILY_API_KEY",
            Self::Exa => "EXA_API_KEY",
        }
    }

    /// Nothing where its variable is not set.
    fn configured(self, pick: &SettingPicker<'_>) -> Option<SearchConfig> {
        let (base_url, key) = match self {
            Self::SearXng => (Some(pick.maybe_text(self.variable())?), None),
            Self::Tavily => (
                pick.maybe_text("TAVILY_BASE_URL"),
                Some(pick.secret(self.variable())?),
            ),
            Self::Brave | Self::Exa => (None, Some(pick.secret(self.variable())?)),
        };
        Some(SearchConfig {
            backend: self,
            base_url,
            key,
        })
    }
}

impl WebConfig {
    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        Self {
            search: search(pick, problems),
            page_chars: pick.count("web.extract_char_limit"),
        }
    }
}

fn search(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Option<SearchConfig> {
    for path in ["web.search_backend", "web.backend"] {
        let Some(name) = pick.maybe_text(path).filter(|name| !name.trim().is_empty()) else {
            continue;
        };
        let Some(backend) = SearchBackend::named(&name) else {
            let what = format!("{name} is not asked here, so there is no web_search");
            let help = "searxng, brave-free, tavily and exa are";
            problems.push(pick.doubted(path, what).help(help));
            return None;
        };
        let configured = backend.configured(pick);
        if configured.is_none() {
            let variable = backend.variable();
            let what =
                format!("{name} cannot be asked without {variable}, so there is no web_search");
            let help = format!("set {variable} in .env");
            problems.push(pick.doubted(path, what).help(help));
        }
        return configured;
    }
    PREFERENCE
        .into_iter()
        .find_map(|backend| backend.configured(pick))
}

impl SpeechConfig {
    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        let endpoint = match pick.flag("stt.enabled") {
            true => endpoint(pick, problems),
            false => None,
        };
        Self {
            endpoint,
            echo_transcripts: pick.flag("stt.echo_transcripts"),
        }
    }
}

fn endpoint(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Option<SpeechEndpoint> {
    let own = pick.secret("VOICE_TOOLS_OPENAI_KEY");
    let language = pick.maybe_text("stt.language");
    let provider = pick.maybe_text("stt.provider").unwrap_or_default();
    match provider.trim().to_ascii_lowercase().as_str() {
        "" if own.is_none() => None,
        "" | "openai" => {
            let written = pick.secret("stt.openai.api_key");
            Some(SpeechEndpoint {
                base_url: pick.text("stt.openai.base_url"),
                model: pick.text("stt.openai.model"),
                key: written.or(own).or_else(|| pick.secret("OPENAI_API_KEY")),
                key_setting: "stt.openai.api_key or VOICE_TOOLS_OPENAI_KEY",
                language,
            })
        }
        "groq" => Some(SpeechEndpoint {
            base_url: GROQ.to_owned(),
            model: pick.text("stt.groq.model"),
            key: pick.secret("GROQ_API_KEY"),
            key_setting: "GROQ_API_KEY",
            language,
        }),
        other => {
            let what = format!("{other} does not write voice messages down here: they stay files");
            let help =
                "openai, or any endpoint that speaks its wire as stt.openai.base_url, and groq do";
            problems.push(pick.doubted("stt.provider", what).help(help));
            None
        }
    }
}

impl SpokenConfig {
    /// Nothing where nobody is to speak.
    pub(super) fn build(
        pick: &SettingPicker<'_>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<Self> {
        let provider = pick.maybe_text("tts.provider")?;
        match provider.trim().to_ascii_lowercase().as_str() {
            "" => None,
            "openai" => Some(Self {
                base_url: pick.text("tts.openai.base_url"),
                model: pick.text("tts.openai.model"),
                voice: pick.text("tts.openai.voice"),
                key: pick
                    .secret("tts.openai.api_key")
                    .or_else(|| pick.secret("VOICE_TOOLS_OPENAI_KEY"))
                    .or_else(|| pick.secret("OPENAI_API_KEY")),
            }),
            other => {
                let what = format!("{other} does not speak here, so there is no text_to_speech");
                let help =
                    "openai, or any endpoint that speaks its wire as tts.openai.base_url, does";
                problems.push(pick.doubted("tts.provider", what).help(help));
                None
            }
        }
    }
}

impl ImagesConfig {
    /// Nothing where nobody is to make any.
    pub(super) fn build(
        pick: &SettingPicker<'_>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<Self> {
        let provider = pick.maybe_text("image_gen.provider")?;
        match provider.trim().to_ascii_lowercase().as_str() {
            "" => None,
            "openai" => Some(Self {
                base_url: pick.text("image_gen.openai.base_url"),
                model: pick.text("image_gen.openai.model"),
                key: pick
                    .secret("image_gen.openai.api_key")
                    .or_else(|| pick.secret("OPENAI_API_KEY")),
            }),
            other => {
                let what =
                    format!("{other} does not make pictures here, so there is no image_generate");
                let help = "openai, or any endpoint that speaks its images wire as image_gen.openai.base_url, does";
                problems.push(pick.doubted("image_gen.provider", what).help(help));
                None
            }
        }
    }
}
