//! The model, from the configuration: any endpoint that speaks OpenAI's chat completions.

use std::sync::Arc;

use hermetic_agent::{Budget, Limits, Model, NoModel, Patience, Patient, openai};
use hermetic_config::Config;
use hermetic_types::Secret;

use crate::Failure;

/// Providers whose endpoint and variable everybody knows.
const KNOWN: [(&str, &str, &str); 7] = [
    (
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
    ),
    ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    (
        "nous",
        "https://inference-api.nousresearch.com/v1",
        "NOUS_API_KEY",
    ),
    ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    (
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
    ),
    ("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
];

/// What one entry of the configuration says about a model.
struct Wanted<'a> {
    provider: &'a str,
    model: &'a str,
    base_url: Option<&'a str>,
    key: Option<&'a Secret>,
}

pub(crate) fn model(config: &Config) -> Result<Arc<dyn Model>, Failure> {
    let settings = config.model();
    let Some(name) = settings.name.as_deref() else {
        return Ok(Arc::new(NoModel));
    };
    let first = endpoint(
        config,
        &Wanted {
            provider: &settings.provider,
            model: name,
            base_url: settings.base_url.as_deref(),
            key: settings.api_key.as_ref(),
        },
    )?;
    let mut fallbacks = Vec::new();
    for fallback in &settings.fallbacks {
        fallbacks.push(endpoint(
            config,
            &Wanted {
                provider: fallback.provider.as_deref().unwrap_or(&settings.provider),
                model: fallback.model.as_deref().unwrap_or(name),
                base_url: fallback.base_url.as_deref(),
                key: fallback.api_key.as_ref(),
            },
        )?);
    }
    Ok(Arc::new(Patient::new(
        first,
        fallbacks,
        Patience::default(),
    )))
}

/// The model of a task of its own, or the one that answers. `None` where there is neither.
pub(crate) fn auxiliary(config: &Config, task: &str) -> Result<Option<Arc<dyn Model>>, Failure> {
    let settings = config.model();
    let own = settings.auxiliary.get(task).cloned().unwrap_or_default();
    let Some(name) = own.model.as_deref().or(settings.name.as_deref()) else {
        return Ok(None);
    };
    let elsewhere = own.provider.is_some() || own.base_url.is_some();
    endpoint(
        config,
        &Wanted {
            provider: own.provider.as_deref().unwrap_or(&settings.provider),
            model: name,
            base_url: match elsewhere {
                true => own.base_url.as_deref(),
                false => settings.base_url.as_deref(),
            },
            // A key goes to the endpoint it was written for.
            key: match elsewhere {
                true => own.api_key.as_ref(),
                false => own.api_key.as_ref().or(settings.api_key.as_ref()),
            },
        },
    )
    .map(Some)
}

pub(crate) fn limits(config: &Config) -> Limits {
    let mut limits = Limits {
        max_turns: config.agent().max_turns,
        ..Limits::default()
    };
    if let Some(tokens) = config.model().context_length {
        limits.budget = Budget::for_context(usize::try_from(tokens).unwrap_or(usize::MAX));
    }
    limits
}

fn endpoint(config: &Config, wanted: &Wanted<'_>) -> Result<Arc<dyn Model>, Failure> {
    let settings = config.model();
    let own = settings.providers.get(wanted.provider);
    let known = known(config, wanted);
    let base_url = wanted
        .base_url
        .or_else(|| own.and_then(|own| own.base_url.as_deref()))
        .or(known.map(|(_, url, _)| url));
    let Some(base_url) = base_url else {
        return Err(Failure::new(
            format!(
                "no endpoint is known for model {:?} (provider {})",
                wanted.model, wanted.provider
            ),
            "write model.base_url, the address of an OpenAI-compatible endpoint that ends in /v1",
        ));
    };
    // A key goes to the endpoint it was written for: that of a known provider is not handed to
    // whatever base_url names, unless it is the customary OPENAI_API_KEY.
    let variable = match known {
        Some((_, url, variable)) if base_url == url => variable,
        _ => "OPENAI_API_KEY",
    };
    let key = wanted
        .key
        .or_else(|| own.and_then(|own| own.api_key.as_ref()))
        .or_else(|| settings.credentials.get(variable));
    let mut endpoint = openai::Settings::new(base_url, key.cloned(), wanted.model);
    endpoint.proxy = config.gateway().proxy.clone().map(Secret::new);
    if let Some(own) = own {
        endpoint.headers.extend(
            own.headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        endpoint.silence = own.request_timeout.unwrap_or(endpoint.silence);
    }
    let model = openai::OpenAi::new(endpoint).map_err(|error| {
        Failure::caused(&error, "look at model.base_url and the provider's key")
    })?;
    Ok(Arc::new(model))
}

/// The provider by its name, or with `auto` the first we hold a key for.
fn known(
    config: &Config,
    wanted: &Wanted<'_>,
) -> Option<(&'static str, &'static str, &'static str)> {
    let held = |variable: &str| config.model().credentials.contains_key(variable);
    KNOWN
        .into_iter()
        .find(|(name, _, variable)| match wanted.provider {
            "auto" | "" => held(variable),
            provider => provider == *name,
        })
}
