//! Providers of models whose address, wire and variables everybody knows.
//!
//! Names and variables are those of Hermes. Facts only: what to do with them is decided where the
//! gateway is put together.

use crate::settings::words;

/// A provider and what is known about it.
#[derive(Clone, Copy, Debug)]
pub struct KnownProvider {
    pub name: &'static str,
    /// Other names for the same.
    pub also: &'static [&'static str],
    /// Nothing where every account has its own.
    pub base_url: Option<&'static str>,
    pub api_mode: ApiMode,
    /// Variables that hold its key, the strongest first.
    pub keys: &'static [&'static str],
    /// The variable that holds another address for it.
    pub base_url_variable: Option<&'static str>,
}

/// The wire that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiMode {
    ChatCompletions,
    Responses,
    AnthropicMessages,
    Gemini,
}

words!(ApiMode {
    "chat_completions" => ChatCompletions,
    "responses" => Responses,
    "anthropic_messages" => AnthropicMessages,
    "gemini" => Gemini,
});

impl ApiMode {
    /// The names that stand in files, Hermes' among them.
    pub(crate) const NAMES: &[&str] = &[
        "chat_completions",
        "responses",
        "codex_responses",
        "anthropic_messages",
        "gemini",
    ];

    pub(crate) fn written(name: &str) -> Option<Self> {
        match name {
            "codex_responses" => Some(Self::Responses),
            name => name.parse().ok(),
        }
    }
}

impl KnownProvider {
    /// The provider of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        PROVIDERS
            .iter()
            .find(|known| known.name == name || known.also.contains(&name.as_str()))
    }

    /// All of them, in the order in which `auto` looks for a key.
    pub fn all() -> &'static [Self] {
        PROVIDERS
    }
}

/// Every variable that holds a key of a provider.
pub(crate) fn key_variables() -> Vec<&'static str> {
    unique(
        PROVIDERS
            .iter()
            .flat_map(|known| known.keys.iter().copied()),
    )
}

/// Every variable that holds another address of a provider.
pub(crate) fn address_variables() -> Vec<&'static str> {
    unique(PROVIDERS.iter().filter_map(|known| known.base_url_variable))
}

fn unique(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

const fn openai_like(
    name: &'static str,
    also: &'static [&'static str],
    base_url: &'static str,
    keys: &'static [&'static str],
    base_url_variable: Option<&'static str>,
) -> KnownProvider {
    KnownProvider {
        name,
        also,
        base_url: Some(base_url),
        api_mode: ApiMode::ChatCompletions,
        keys,
        base_url_variable,
    }
}

const fn anthropic_like(
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    base_url_variable: &'static str,
) -> KnownProvider {
    KnownProvider {
        name,
        also: &[],
        base_url: Some(base_url),
        api_mode: ApiMode::AnthropicMessages,
        keys,
        base_url_variable: Some(base_url_variable),
    }
}

const PROVIDERS: &[KnownProvider] = &[
    openai_like(
        "openrouter",
        &[],
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        Some("OPENROUTER_BASE_URL"),
    ),
    openai_like(
        "openai",
        &["openai-api"],
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
        Some("OPENAI_BASE_URL"),
    ),
    anthropic_like(
        "anthropic",
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN"],
        "ANTHROPIC_BASE_URL",
    ),
    KnownProvider {
        name: "gemini",
        also: &["google", "google-ai-studio"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        api_mode: ApiMode::Gemini,
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_variable: Some("GEMINI_BASE_URL"),
    },
    openai_like(
        "nous",
        &[],
        "https://inference-api.nousresearch.com/v1",
        &["NOUS_API_KEY"],
        None,
    ),
    openai_like(
        "groq",
        &[],
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
        None,
    ),
    openai_like(
        "mistral",
        &[],
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        None,
    ),
    openai_like(
        "deepseek",
        &[],
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
        Some("DEEPSEEK_BASE_URL"),
    ),
    openai_like(
        "xai",
        &["grok"],
        "https://api.x.ai/v1",
        &["XAI_API_KEY"],
        Some("XAI_BASE_URL"),
    ),
    openai_like(
        "together",
        &["togetherai"],
        "https://api.together.xyz/v1",
        &["TOGETHER_API_KEY"],
        None,
    ),
    openai_like(
        "fireworks",
        &["fireworks-ai"],
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
        None,
    ),
    openai_like(
        "cerebras",
        &[],
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
        None,
    ),
    openai_like(
        "nvidia",
        &["nvidia-nim"],
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_API_KEY"],
        Some("NVIDIA_BASE_URL"),
    ),
    openai_like(
        "huggingface",
        &["hf"],
        "https://router.huggingface.co/v1",
        &["HF_TOKEN"],
        Some("HF_BASE_URL"),
    ),
    openai_like(
        "zai",
        &["glm", "z-ai"],
        "https://api.z.ai/api/paas/v4",
        &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        Some("GLM_BASE_URL"),
    ),
    openai_like(
        "kimi-coding",
        &["kimi", "moonshot"],
        "https://api.moonshot.ai/v1",
        &["KIMI_API_KEY", "KIMI_CODING_API_KEY"],
        Some("KIMI_BASE_URL"),
    ),
    openai_like(
        "kimi-coding-cn",
        &[],
        "https://api.moonshot.cn/v1",
        &["KIMI_CN_API_KEY"],
        None,
    ),
    anthropic_like(
        "minimax",
        "https://api.minimax.io/anthropic",
        &["MINIMAX_API_KEY"],
        "MINIMAX_BASE_URL",
    ),
    anthropic_like(
        "minimax-cn",
        "https://api.minimaxi.com/anthropic",
        &["MINIMAX_CN_API_KEY"],
        "MINIMAX_CN_BASE_URL",
    ),
    openai_like(
        "alibaba",
        &["dashscope", "qwen"],
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY"],
        Some("DASHSCOPE_BASE_URL"),
    ),
    openai_like(
        "ai-gateway",
        &["vercel"],
        "https://ai-gateway.vercel.sh/v1",
        &["AI_GATEWAY_API_KEY"],
        Some("AI_GATEWAY_BASE_URL"),
    ),
    openai_like(
        "opencode-zen",
        &[],
        "https://opencode.ai/zen/v1",
        &["OPENCODE_ZEN_API_KEY"],
        Some("OPENCODE_ZEN_BASE_URL"),
    ),
    openai_like(
        "arcee",
        &[],
        "https://api.arcee.ai/api/v1",
        &["ARCEEAI_API_KEY"],
        Some("ARCEE_BASE_URL"),
    ),
    openai_like(
        "gmi",
        &[],
        "https://api.gmi-serving.com/v1",
        &["GMI_API_KEY"],
        Some("GMI_BASE_URL"),
    ),
    openai_like(
        "xiaomi",
        &[],
        "https://api.xiaomimimo.com/v1",
        &["XIAOMI_API_KEY"],
        Some("XIAOMI_BASE_URL"),
    ),
    openai_like(
        "ollama-cloud",
        &[],
        "https://ollama.com/v1",
        &["OLLAMA_API_KEY"],
        Some("OLLAMA_BASE_URL"),
    ),
    openai_like(
        "lmstudio",
        &["lm-studio"],
        "http://127.0.0.1:1234/v1",
        &["LM_API_KEY"],
        Some("LM_BASE_URL"),
    ),
    openai_like("ollama", &[], "http://127.0.0.1:11434/v1", &[], None),
    // By bearer keys, at the address that speaks OpenAI's wire. Signed requests are another wire.
    openai_like(
        "bedrock",
        &["aws-bedrock"],
        "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
        &["AWS_BEARER_TOKEN_BEDROCK"],
        Some("BEDROCK_BASE_URL"),
    ),
    KnownProvider {
        name: "azure",
        also: &["azure-foundry", "azure-openai"],
        base_url: None,
        api_mode: ApiMode::ChatCompletions,
        keys: &["AZURE_FOUNDRY_API_KEY", "AZURE_OPENAI_API_KEY"],
        base_url_variable: Some("AZURE_FOUNDRY_BASE_URL"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_providers_and_every_address_is_one() {
        let mut names: Vec<_> = PROVIDERS
            .iter()
            .flat_map(|known| std::iter::once(known.name).chain(known.also.iter().copied()))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for known in PROVIDERS {
            let fits = |url: &str| url.starts_with("http") && !url.ends_with('/');
            assert!(known.base_url.is_none_or(fits), "{}", known.name);
            assert_eq!(
                KnownProvider::named(known.name).map(|k| k.name),
                Some(known.name)
            );
        }
    }

    #[test]
    fn every_name_of_a_wire_is_understood() {
        for name in ApiMode::NAMES {
            assert!(ApiMode::written(name).is_some(), "{name}");
        }
    }
}
