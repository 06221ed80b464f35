//! Web tools, voice and pictures: `web:`, `stt:`, `tts:` and `image_gen:`.

use super::{SchemaKey, ValueShape, count, key};

pub(super) fn keys() -> Vec<SchemaKey> {
    let mut keys = web();
    keys.extend(speech());
    keys.extend(spoken());
    keys.extend(images());
    keys
}

fn web() -> Vec<SchemaKey> {
    vec![
        key(
            "web.backend",
            ValueShape::Text,
            "",
            "who searches the web: searxng, brave-free, tavily or exa; the first whose variable is set if not written",
        ),
        key(
            "web.search_backend",
            ValueShape::Text,
            "",
            "the same for web_search alone",
        ),
        key(
            "web.extract_backend",
            ValueShape::Text,
            "",
            "who reads pages for web_extract",
        ),
        key(
            "web.extract_char_limit",
            count(2000, 80_000),
            "15000",
            "characters of one page that web_extract shows",
        ),
    ]
}

fn speech() -> Vec<SchemaKey> {
    vec![
        key(
            "stt.enabled",
            ValueShape::Flag,
            "true",
            "write voice messages down, where there is an endpoint for it",
        )
        .also_at(["gateway.stt_enabled", "stt_enabled"]),
        key(
            "stt.echo_transcripts",
            ValueShape::Flag,
            "true",
            "show in the chat what was understood",
        )
        .also_at(["gateway.stt_echo_transcripts", "stt_echo_transcripts"]),
        key(
            "stt.provider",
            ValueShape::Text,
            "",
            "openai (any endpoint that speaks its wire) or groq; openai if not written and VOICE_TOOLS_OPENAI_KEY is set",
        ),
        key(
            "stt.openai.model",
            ValueShape::Text,
            "whisper-1",
            "the model that writes down",
        )
        .mirrored_by("STT_OPENAI_MODEL"),
        key(
            "stt.openai.base_url",
            ValueShape::Text,
            "https://api.openai.com/v1",
            "the endpoint",
        )
        .mirrored_by("STT_OPENAI_BASE_URL"),
        key(
            "stt.openai.api_key",
            ValueShape::Secret,
            "",
            "its key; VOICE_TOOLS_OPENAI_KEY or OPENAI_API_KEY if not written",
        ),
        key(
            "stt.groq.model",
            ValueShape::Text,
            "whisper-large-v3-turbo",
            "the model at Groq",
        )
        .mirrored_by("STT_GROQ_MODEL"),
        key(
            "stt.language",
            ValueShape::Text,
            "",
            "the language that is spoken, as in `en`; found out if not written",
        )
        .also_at(["stt.local.language"]),
    ]
}

fn spoken() -> Vec<SchemaKey> {
    vec![
        key(
            "tts.provider",
            ValueShape::Text,
            "",
            "openai: an endpoint that speaks OpenAI's speech wire; nobody speaks if not written",
        ),
        key(
            "tts.openai.model",
            ValueShape::Text,
            "gpt-4o-mini-tts",
            "the model that speaks",
        ),
        key(
            "tts.openai.voice",
            ValueShape::Text,
            "alloy",
            "its voice, as the endpoint names it",
        ),
        key(
            "tts.openai.base_url",
            ValueShape::Text,
            "https://api.openai.com/v1",
            "the endpoint",
        ),
        key(
            "tts.openai.api_key",
            ValueShape::Secret,
            "",
            "its key; VOICE_TOOLS_OPENAI_KEY or OPENAI_API_KEY if not written",
        ),
    ]
}

fn images() -> Vec<SchemaKey> {
    vec![
        key(
            "image_gen.provider",
            ValueShape::Text,
            "",
            "openai: an endpoint that speaks OpenAI's images wire; nobody makes pictures if not written",
        ),
        key(
            "image_gen.openai.model",
            ValueShape::Text,
            "gpt-image-1",
            "the model that makes them",
        )
        .also_at(["image_gen.model"])
        .mirrored_by("OPENAI_IMAGE_MODEL"),
        key(
            "image_gen.openai.base_url",
            ValueShape::Text,
            "https://api.openai.com/v1",
            "the endpoint",
        ),
        key(
            "image_gen.openai.api_key",
            ValueShape::Secret,
            "",
            "its key; OPENAI_API_KEY if not written",
        ),
    ]
}
