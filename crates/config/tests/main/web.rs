//! Who searches, listens and makes pictures.

use hermetic_config::{Config, SearchBackend};

use crate::lab::Lab;

fn backend(config: &Config) -> Option<SearchBackend> {
    config.web().search.as_ref().map(|search| search.backend)
}

fn warned(config: &Config, words: &str) -> bool {
    let mut warnings = config.warnings().iter();
    warnings.any(|warning| warning.to_string().contains(words))
}

#[test]
fn a_provider_is_chosen_by_name_or_by_the_first_key() {
    let nothing = Lab::new().config();
    assert_eq!(backend(&nothing), None);
    let keys = "SEARXNG_URL=http://searx.test\nTAVILY_API_KEY=t\nBRAVE_SEARCH_API_KEY=b\n";
    assert_eq!(
        backend(&Lab::new().dotenv(keys).config()),
        Some(SearchBackend::Tavily)
    );
    let chosen = Lab::with("web: {backend: tavily, search_backend: SearXNG}\n").dotenv(keys);
    let search = chosen.config().web().search.clone().unwrap();
    assert_eq!(search.backend, SearchBackend::SearXng);
    assert_eq!(search.base_url.as_deref(), Some("http://searx.test"));
    assert!(search.key.is_none());
}

#[test]
fn what_cannot_be_asked_is_said_and_nobody_else_is_asked_instead() {
    for (text, words) in [
        ("web: {backend: firecrawl}\n", "firecrawl is not asked here"),
        ("web: {search_backend: exa}\n", "without EXA_API_KEY"),
    ] {
        let config = Lab::with(text).dotenv("TAVILY_API_KEY=t\n").config();
        assert_eq!(backend(&config), None, "{text}");
        assert!(warned(&config, words), "{text}: {:?}", config.warnings());
    }
}

#[test]
fn recordings_go_nowhere_unless_somebody_said_so() {
    let quiet = Lab::new()
        .dotenv("OPENAI_API_KEY=o\nGROQ_API_KEY=g\n")
        .config();
    assert!(quiet.speech().endpoint.is_none() && quiet.speech().echo_transcripts);
    let own = Lab::new().dotenv("VOICE_TOOLS_OPENAI_KEY=v\n").config();
    assert_eq!(own.speech().endpoint.as_ref().unwrap().model, "whisper-1");
    let local = Lab::with("stt: {provider: local, local: {model: base}}\n");
    let local = local.dotenv("VOICE_TOOLS_OPENAI_KEY=v\n").config();
    assert!(local.speech().endpoint.is_none());
    assert!(warned(&local, "they stay files"), "{:?}", local.warnings());
    let off = Lab::with("gateway: {stt_enabled: false}\nstt: {provider: openai}\n").config();
    assert!(off.speech().endpoint.is_none());
    let groq = Lab::with("stt: {provider: groq, echo_transcripts: false}\n");
    let groq = groq.dotenv("GROQ_API_KEY=g\n").config();
    assert_eq!(
        groq.speech().endpoint.as_ref().unwrap().key_setting,
        "GROQ_API_KEY"
    );
    assert!(!groq.speech().echo_transcripts);
}

#[test]
fn pictures_are_made_by_openais_wire_or_by_nobody() {
    assert!(
        Lab::new()
            .dotenv("OPENAI_API_KEY=o\n")
            .config()
            .images()
            .is_none()
    );
    let openai = Lab::with("image_gen: {provider: openai, model: dall-e-3}\n").config();
    assert_eq!(openai.images().unwrap().model, "dall-e-3");
    let fal = Lab::with("image_gen: {provider: fal}\n").config();
    assert!(fal.images().is_none() && warned(&fal, "there is no image_generate"));
}
