//! Which model answers.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::Secret;

use super::pick::{Pick, field, seconds_field, secret_field};
use crate::problem::Problem;
use crate::value::{Record, Value};

#[derive(Clone, Debug)]
pub struct Model {
    /// `None` where nobody wrote one.
    pub name: Option<String>,
    /// `auto` looks at the credentials.
    pub provider: String,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub context_length: Option<u32>,
    pub providers: BTreeMap<String, Provider>,
    pub fallbacks: Vec<ModelRef>,
    /// By task, such as `approval`.
    pub auxiliary: BTreeMap<String, ModelRef>,
    /// Credentials by the variable that holds them, such as `OPENROUTER_API_KEY`.
    pub credentials: BTreeMap<&'static str, Secret>,
}

#[derive(Clone, Debug, Default)]
pub struct Provider {
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub api_mode: Option<String>,
    pub model: Option<String>,
    pub request_timeout: Option<Duration>,
    pub stale_timeout: Option<Duration>,
    pub headers: BTreeMap<String, Secret>,
}

/// One model somewhere.
#[derive(Clone, Debug, Default)]
pub struct ModelRef {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub timeout: Option<Duration>,
}

impl Model {
    pub(super) fn build(pick: &Pick<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut providers: BTreeMap<String, Provider> = pick
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
            credentials: crate::schema::PROVIDER_KEYS
                .into_iter()
                .filter_map(|name| pick.secret(name).map(|secret| (name, secret)))
                .collect(),
        }
    }
}

fn provider(pick: &Pick<'_>, record: &Record) -> Provider {
    Provider {
        base_url: field(record, "base_url"),
        api_key: key_of(pick, record),
        api_mode: field(record, "api_mode"),
        model: field(record, "model"),
        request_timeout: seconds_field(record, "request_timeout_seconds"),
        stale_timeout: seconds_field(record, "stale_timeout_seconds"),
        headers: match record.get("extra_headers") {
            Some(Value::Pairs(pairs)) => pairs.clone(),
            _ => BTreeMap::new(),
        },
    }
}

fn model_ref(pick: &Pick<'_>, record: &Record) -> ModelRef {
    ModelRef {
        provider: field(record, "provider"),
        model: field(record, "model"),
        base_url: field(record, "base_url"),
        api_key: key_of(pick, record),
        timeout: seconds_field(record, "timeout"),
    }
}

fn key_of(pick: &Pick<'_>, record: &Record) -> Option<Secret> {
    secret_field(record, "api_key").or_else(|| {
        field(record, "key_env")
            .and_then(|name| pick.variable(&name))
            .map(Secret::new)
    })
}
