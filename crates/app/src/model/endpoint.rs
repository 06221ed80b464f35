//! Where a model of the configuration is, and how it is spoken to.

use std::time::Duration;

use hermetic_agent::endpoint::{ApiDialect, EndpointSettings, KeyHeader, ReasoningEffort};
use hermetic_config::{ApiMode, Config, KnownProvider, ProviderConfig};
use hermetic_types::Secret;

use super::catalog::ModelCatalog;
use super::configured::{ConfiguredModel, ModelRole};
use super::vendor::{is_thinking_openai, name_at, vendor};
use crate::AppFailure;

/// What one entry of the configuration says about a model.
pub(super) struct WantedModel<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) base_url: Option<&'a str>,
    pub(super) key: Option<&'a Secret>,
    pub(super) api_mode: Option<ApiMode>,
    pub(super) context_length: Option<u32>,
    pub(super) timeout: Option<Duration>,
    pub(super) extra_body: Option<&'a serde_json::Map<String, serde_json::Value>>,
}

pub(super) fn endpoint(
    config: &Config,
    catalog: &ModelCatalog,
    wanted: &WantedModel<'_>,
    role: ModelRole,
) -> Result<ConfiguredModel, AppFailure> {
    let own = config.model().providers.get(wanted.provider);
    let known = known(config, wanted);
    let address = address(config, wanted, own, known)?;
    let provider = known.map_or(wanted.provider, |known| known.name);
    let model = name_at(provider, wanted.model);
    let mode = api_mode(wanted, own, known, &address, &model);
    let key = key(config, wanted, own, known, &address, mode);
    // Said at the start: the API would refuse each turn with words that name no remedy.
    if mode == ApiMode::AnthropicMessages && key.as_ref().is_some_and(is_subscription_token) {
        return Err(subscription_token());
    }
    let entry = catalog.entry(&model);
    let mut settings = EndpointSettings::speaking(dialect(mode), address.base_url, key, &model);
    let azure = known.is_some_and(|known| known.name == "azure");
    if azure {
        at_azure(&mut settings, own);
    }
    // Others than the vendors of these wires take bearer keys by every one of them.
    if known.is_some_and(|known| matches!(known.name, "minimax" | "minimax-cn" | "bedrock")) {
        settings.key_header = KeyHeader::Bearer;
    }
    settings.proxy = config.gateway().proxy.clone();
    settings.stream = config.model().streaming;
    settings.max_output_tokens = config.model().max_tokens;
    let effort = config.model().reasoning_effort.as_deref();
    settings.effort = effort.and_then(ReasoningEffort::named);
    settings.price = entry.as_ref().and_then(|entry| entry.price);
    if let Some(own) = own {
        settings.headers.extend(own.headers.clone());
        settings.extra_body.extend(own.extra_body.clone());
    }
    settings
        .extra_body
        // After the provider's, so that what is written for one model stands over what holds for
        // all of that provider.
        .extend(wanted.extra_body.cloned().unwrap_or_default());
    let patience = own.and_then(|own| own.stale_timeout.or(own.request_timeout));
    settings.silence = wanted.timeout.or(patience).unwrap_or(settings.silence);
    let written = own.and_then(|own| own.context_lengths.get(wanted.model).copied());
    Ok(ConfiguredModel {
        role,
        provider: provider.to_owned(),
        settings,
        context_length: wanted
            .context_length
            .or(written)
            .or(entry.and_then(|entry| entry.context_length)),
    })
}

/// The provider by its name; with `auto` the maker of the model if we hold its key, else the first whose
/// key we hold.
fn known(config: &Config, wanted: &WantedModel<'_>) -> Option<&'static KnownProvider> {
    if !matches!(wanted.provider, "auto" | "") {
        return KnownProvider::named(wanted.provider);
    }
    // An address says whose it is. One on this machine may be anybody's.
    if let Some(base_url) = wanted.base_url {
        let is_theirs = |known: &&KnownProvider| is_own(known, base_url);
        return KnownProvider::all()
            .iter()
            .filter(|known| known.base_url.is_some_and(|own| own.starts_with("https:")))
            .find(is_theirs);
    }
    let held = |known: &&KnownProvider| first_key(config, known).is_some();
    // Names with a maker before them are OpenRouter's.
    let router = wanted.model.contains('/').then_some("openrouter");
    router
        .and_then(KnownProvider::named)
        .filter(held)
        .or_else(|| vendor(wanted.model).filter(held))
        .or_else(|| KnownProvider::all().iter().find(held))
}

/// Where it is, and whether that is the provider's own place.
struct EndpointAddress {
    base_url: String,
    is_providers_own: bool,
}

fn address(
    config: &Config,
    wanted: &WantedModel<'_>,
    own: Option<&ProviderConfig>,
    known: Option<&KnownProvider>,
) -> Result<EndpointAddress, AppFailure> {
    let written = wanted
        .base_url
        .or_else(|| own.and_then(|own| own.base_url.as_deref()));
    if let Some(base_url) = written {
        return Ok(EndpointAddress {
            base_url: base_url.to_owned(),
            is_providers_own: known.is_some_and(|known| is_own(known, base_url)),
        });
    }
    let variable = known.and_then(|known| known.base_url_variable);
    let by_variable = variable.and_then(|name| config.model().addresses.get(name));
    let base_url = by_variable
        .map(String::as_str)
        .or_else(|| known.and_then(|known| known.base_url));
    match base_url {
        Some(base_url) => Ok(EndpointAddress {
            base_url: base_url.to_owned(),
            is_providers_own: true,
        }),
        None => Err(no_endpoint(wanted, known)),
    }
}

/// Whether an address is the provider's. By a wire that others read along, only where it has no other.
/// Bedrock has a host for each region, and two kinds of them.
fn is_own(known: &KnownProvider, base_url: &str) -> bool {
    let is_readable = base_url.starts_with("http://");
    let is_local = known.base_url.is_some_and(|own| own.starts_with("http://"));
    is_host_of(known, base_url) && (!is_readable || is_local)
}

fn is_host_of(known: &KnownProvider, base_url: &str) -> bool {
    let written = authority(base_url);
    let of_amazon = [".amazonaws.com", ".api.aws"]
        .iter()
        .any(|end| written.ends_with(end));
    match known.name {
        "bedrock" => written.starts_with("bedrock-") && of_amazon,
        _ => known.base_url.is_some_and(|own| authority(own) == written),
    }
}

fn no_endpoint(wanted: &WantedModel<'_>, known: Option<&KnownProvider>) -> AppFailure {
    let what = format!(
        "no endpoint is known for model {:?} (provider {})",
        wanted.model, wanted.provider
    );
    if let Some(known) = known {
        let remedy = format!(
            "every account at {} has an address of its own: write it as model.base_url or providers.{}.base_url",
            known.name, known.name
        );
        return AppFailure::new(what, remedy);
    }
    AppFailure::new(
        what,
        "write model.base_url, the address of an endpoint such as https://host/v1, and model.api_mode unless \
         it speaks OpenAI's chat completions; or model.provider, a known one, with its key in .env",
    )
}

fn api_mode(
    wanted: &WantedModel<'_>,
    own: Option<&ProviderConfig>,
    known: Option<&KnownProvider>,
    address: &EndpointAddress,
    model: &str,
) -> ApiMode {
    if let Some(mode) = wanted.api_mode.or_else(|| own.and_then(|own| own.api_mode)) {
        return mode;
    }
    match known {
        Some(known) if known.name == "openai" => match address.is_providers_own {
            true if is_thinking_openai(model) => ApiMode::Responses,
            _ => ApiMode::ChatCompletions,
        },
        // Google serves OpenAI's wire besides its own.
        Some(known) if known.name == "gemini" && address.base_url.ends_with("/openai") => {
            ApiMode::ChatCompletions
        }
        Some(known) => known.api_mode,
        None => by_address(&address.base_url),
    }
}

/// What an address that nobody named says of its wire.
fn by_address(base_url: &str) -> ApiMode {
    let base = base_url.trim_end_matches('/');
    match authority(base) {
        "api.anthropic.com" => ApiMode::AnthropicMessages,
        "generativelanguage.googleapis.com" if !base.ends_with("/openai") => ApiMode::Gemini,
        _ if base.ends_with("/anthropic") || base.ends_with("/anthropic/v1") => {
            ApiMode::AnthropicMessages
        }
        _ => ApiMode::ChatCompletions,
    }
}

/// A key goes to the endpoint it was written for. That of a known provider is not handed to whatever
/// `base_url` names, unless somebody named the provider too and no other key fits its wire; and by no wire
/// that others read along to a provider that has another. `OPENAI_API_KEY` goes to compatible servers where
/// no other provider is named.
fn key(
    config: &Config,
    wanted: &WantedModel<'_>,
    own: Option<&ProviderConfig>,
    known: Option<&KnownProvider>,
    address: &EndpointAddress,
    mode: ApiMode,
) -> Option<Secret> {
    let written = wanted
        .key
        .or_else(|| own.and_then(|own| own.api_key.as_ref()));
    let customary = matches!(mode, ApiMode::ChatCompletions | ApiMode::Responses);
    let names_another = match known {
        Some(known) => known.name != "openai",
        None => !matches!(wanted.provider, "auto" | "" | "custom"),
    };
    let hosts = |known: &&KnownProvider| is_host_of(known, &address.base_url);
    let read_along = KnownProvider::all()
        .iter()
        .find(hosts)
        .is_some_and(|host| !is_own(host, &address.base_url));
    let by_variable = || match known {
        // First: no rule below may hand a key out of a variable to a wire that others read along.
        _ if read_along => None,
        Some(known) if address.is_providers_own || known.base_url.is_none() || !customary => {
            first_key(config, known)
        }
        _ if customary && !names_another => config.model().credentials.get("OPENAI_API_KEY"),
        _ => None,
    };
    written.or_else(by_variable).cloned()
}

/// What a subscription signs in with. The API does not take it as a key.
fn is_subscription_token(key: &Secret) -> bool {
    key.expose().starts_with("sk-ant-oat")
}

fn subscription_token() -> AppFailure {
    AppFailure::new(
        "the key for Anthropic is the token of a subscription (sk-ant-oat…), which is not spoken here",
        "make an API key (sk-ant-api…) in Anthropic's console and write it as ANTHROPIC_API_KEY into .env",
    )
}

fn first_key<'a>(config: &'a Config, known: &KnownProvider) -> Option<&'a Secret> {
    let credentials = &config.model().credentials;
    known.keys.iter().find_map(|name| credentials.get(name))
}

/// Deployments have addresses of their own, with a version in the query. The newer address ends in
/// `/openai/v1`, names the deployment as the model and needs no version.
fn at_azure(settings: &mut EndpointSettings, own: Option<&ProviderConfig>) {
    settings.key_header = KeyHeader::Named("api-key");
    let base = settings.base_url.trim_end_matches('/').to_owned();
    if base.ends_with("/v1") || settings.dialect == ApiDialect::AnthropicMessages {
        return;
    }
    if !base.contains("/openai/deployments/") {
        settings.base_url = format!("{base}/openai/deployments/{}", settings.model);
    }
    let version = own.and_then(|own| own.api_version.clone());
    let version = version.unwrap_or_else(|| "2024-10-21".to_owned());
    settings.query.push(("api-version".to_owned(), version));
}

fn dialect(mode: ApiMode) -> ApiDialect {
    match mode {
        ApiMode::ChatCompletions => ApiDialect::ChatCompletions,
        ApiMode::Responses => ApiDialect::Responses,
        ApiMode::AnthropicMessages => ApiDialect::AnthropicMessages,
        ApiMode::Gemini => ApiDialect::Gemini,
    }
}

/// Host and port, as they are written.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()
}
