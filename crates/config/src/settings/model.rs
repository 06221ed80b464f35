//! Which model answers.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::Secret;

use super::pick::{SettingPicker, field, seconds_field, secret_field};
use crate::problem::ConfigProblem;
use crate::providers::{ApiMode, address_variables, key_variables};
use crate::value::{RecordValue, SettingValue};

#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// `None` where nobody wrote one.
    pub name: Option<String>,
    /// `auto` looks at the credentials.
    pub provider: String,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub context_length: Option<u32>,
    pub api_mode: Option<ApiMode>,
    /// Tokens of one answer.
    pub max_tokens: Option<u32>,
    pub streaming: bool,
    /// In Hermes' words, such as `medium`.
    pub reasoning_effort: Option<String>,
    pub providers: BTreeMap<String, ProviderConfig>,
    pub fallbacks: Vec<ModelRef>,
    /// By task, such as `approval`.
    pub auxiliary: BTreeMap<String, ModelRef>,
    /// Credentials by the variable that holds them, such as `OPENROUTER_API_KEY`.
    pub credentials: BTreeMap<&'static str, Secret>,
    /// Addresses of known providers by the variable that holds them, such as `OPENAI_BASE_URL`.
    pub addresses: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, Default)]
pub struct ProviderConfig {
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub api_mode: Option<ApiMode>,
    pub model: Option<String>,
    /// Azure's.
    pub api_version: Option<String>,
    /// Tokens that single models can see, by their names.
    pub context_lengths: BTreeMap<String, u32>,
    pub request_timeout: Option<Duration>,
    pub stale_timeout: Option<Duration>,
    pub headers: BTreeMap<String, Secret>,
    /// Fields that are sent along with every request.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// One model somewhere.
#[derive(Clone, Debug, Default)]
pub struct ModelRef {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub api_mode: Option<ApiMode>,
    pub timeout: Option<Duration>,
    /// Fields that are sent along with every request.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

impl ModelRef {
    /// Whether it names a model or a place of its own. `auto` is what Hermes writes for the one that answers.
    pub fn names_a_model(&self) -> bool {
        let names_provider = self.provider.as_deref().is_some_and(|name| name != "auto");
        let is_reached_apart = self.api_key.is_some() || self.api_mode.is_some();
        names_provider || self.model.is_some() || self.base_url.is_some() || is_reached_apart
    }

    /// Whether nothing is written that would hold for it.
    pub fn is_empty(&self) -> bool {
        !self.names_a_model() && self.timeout.is_none() && self.extra_body.is_empty()
    }
}

impl ModelConfig {
    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        let mut providers: BTreeMap<String, ProviderConfig> = pick
            .table("providers")
            .map(|(name, record)| (name.clone(), provider(pick, record)))
            .collect();
        for record in pick.records("custom_providers") {
            match field(record, "name") {
                Some(name) => {
                    providers.insert(name, provider(pick, record));
                }
                None => problems.push(
                    pick.wrong("custom_providers", "a provider without a `name`")
                        .help("give it one; models refer to it by that"),
                ),
            }
        }
        Self {
            name: pick.maybe_text("model.default"),
            provider: pick.text("model.provider"),
            base_url: pick.maybe_text("model.base_url"),
            api_key: pick.secret("model.api_key"),
            context_length: pick.maybe_count("model.context_length"),
            api_mode: pick
                .maybe_text("model.api_mode")
                .and_then(|name| ApiMode::written(&name)),
            max_tokens: pick.maybe_count("model.max_tokens"),
            streaming: pick.flag("model.streaming"),
            reasoning_effort: pick.maybe_text("agent.reasoning_effort"),
            providers,
            fallbacks: pick
                .records("fallback_model")
                .iter()
                .map(|record| model_ref(pick, record))
                .collect(),
            auxiliary: pick
                .table("auxiliary")
                .map(|(task, record)| (task.clone(), model_ref(pick, record)))
                .collect(),
            credentials: key_variables()
                .into_iter()
                .filter_map(|name| pick.secret(name).map(|secret| (name, secret)))
                .collect(),
            addresses: address_variables()
                .into_iter()
                .filter_map(|name| pick.maybe_text(name).map(|address| (name, address)))
                .collect(),
        }
    }
}

fn provider(pick: &SettingPicker<'_>, record: &RecordValue) -> ProviderConfig {
    ProviderConfig {
        base_url: field(record, "base_url"),
        api_key: key_of(pick, record),
        api_mode: mode(record),
        model: field(record, "model"),
        api_version: field(record, "api_version"),
        context_lengths: context_lengths(record),
        request_timeout: seconds_field(record, "request_timeout_seconds"),
        stale_timeout: seconds_field(record, "stale_timeout_seconds"),
        headers: match record.get("extra_headers") {
            Some(SettingValue::Pairs(pairs)) => pairs.clone(),
            _ => BTreeMap::new(),
        },
        extra_body: extra_body(record),
    }
}

fn mode(record: &RecordValue) -> Option<ApiMode> {
    ApiMode::written(&field(record, "api_mode")?)
}

fn extra_body(record: &RecordValue) -> serde_json::Map<String, serde_json::Value> {
    match record.get("extra_body") {
        Some(SettingValue::Tree(serde_json::Value::Object(fields))) => fields.clone(),
        _ => serde_json::Map::new(),
    }
}

/// What `models.<name>.context_length` says.
fn context_lengths(record: &RecordValue) -> BTreeMap<String, u32> {
    let Some(SettingValue::Tree(serde_json::Value::Object(models))) = record.get("models") else {
        return BTreeMap::new();
    };
    let known = models.iter().filter_map(|(name, model)| {
        let tokens = model.get("context_length")?.as_u64()?;
        Some((name.clone(), u32::try_from(tokens).ok()?))
    });
    known.collect()
}

fn model_ref(pick: &SettingPicker<'_>, record: &RecordValue) -> ModelRef {
    ModelRef {
        provider: field(record, "provider"),
        model: field(record, "model"),
        base_url: field(record, "base_url"),
        api_key: key_of(pick, record),
        api_mode: mode(record),
        timeout: seconds_field(record, "timeout"),
        extra_body: extra_body(record),
    }
}

fn key_of(pick: &SettingPicker<'_>, record: &RecordValue) -> Option<Secret> {
    secret_field(record, "api_key").or_else(|| {
        field(record, "key_env")
            .and_then(|name| pick.variable(&name))
            .map(Secret::new)
    })
}
