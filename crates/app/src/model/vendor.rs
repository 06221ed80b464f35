//! Who made a model, told from its name.

use hermetic_config::KnownProvider;

/// The provider that serves the models of a family itself, by how their names begin.
const FAMILIES: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gemini", "gemini"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("magistral", "mistral"),
    ("codestral", "mistral"),
    ("glm", "zai"),
    ("kimi", "kimi-coding"),
    ("minimax", "minimax"),
];

/// Who makes it: `anthropic` for `claude-opus-4-6` and for `anthropic/claude-opus-4.6`.
pub(super) fn vendor(model: &str) -> Option<&'static KnownProvider> {
    if let Some((vendor, _)) = model.split_once('/') {
        return KnownProvider::named(vendor);
    }
    let model = model.to_ascii_lowercase();
    let (_, name) = FAMILIES
        .iter()
        .find(|(beginning, _)| model.starts_with(beginning))?;
    KnownProvider::named(name)
}

/// The name as this provider has it. Names are written as OpenRouter has them, `anthropic/claude-opus-4.6`;
/// the maker itself takes them without its own name, and Anthropic with dashes.
pub(super) fn name_at(provider: &str, model: &str) -> String {
    let Some(known) = KnownProvider::named(provider) else {
        return model.to_owned();
    };
    let own = model
        .split_once('/')
        .filter(|(vendor, _)| KnownProvider::named(vendor).is_some_and(|v| v.name == known.name));
    let name = own.map_or(model, |(_, name)| name);
    match known.name {
        "anthropic" if name.starts_with("claude") => name.replace('.', "-"),
        // Its own models have a vendor of the same name there.
        "openrouter" => model.to_owned(),
        _ => name.to_owned(),
    }
}

/// Whether a model thinks before it speaks, which OpenAI serves by its Responses only where tools are
/// called too.
pub(super) fn is_thinking_openai(model: &str) -> bool {
    let beginnings = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
    let thinks = beginnings.iter().any(|name| model.starts_with(name));
    thinks && !model.contains("-chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makers_own_name_is_left_out_where_the_maker_serves_it() {
        let table = [
            ("anthropic", "anthropic/claude-opus-4.6", "claude-opus-4-6"),
            ("anthropic", "claude-opus-4.6", "claude-opus-4-6"),
            ("gemini", "google/gemini-3-pro", "gemini-3-pro"),
            ("openai", "openai/gpt-5.2", "gpt-5.2"),
            (
                "openrouter",
                "anthropic/claude-opus-4.6",
                "anthropic/claude-opus-4.6",
            ),
            ("openrouter", "openrouter/auto", "openrouter/auto"),
            ("groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
            ("mine", "a/b", "a/b"),
        ];
        for (provider, model, expected) in table {
            assert_eq!(name_at(provider, model), expected);
        }
    }

    #[test]
    fn makers_are_known_by_the_names_of_their_models() {
        let of = |model| vendor(model).map(|known| known.name);
        assert_eq!(of("claude-sonnet-4-5"), Some("anthropic"));
        assert_eq!(of("google/gemini-3-pro"), Some("gemini"));
        assert_eq!(of("MiniMax-M2"), Some("minimax"));
        assert_eq!(of("qwen3-coder"), None);
        assert_eq!(of("nobody/x"), None);
    }
}
