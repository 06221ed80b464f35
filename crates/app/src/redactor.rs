//! What is taken out of everything that leaves, the log included: every secret the configuration
//! holds.

use hermetic_config::{Config, Record, Value};
use hermetic_redact::{Redactor, Settings};
use hermetic_types::Secret;

use super::egress;

pub fn redactor(config: &Config) -> Redactor {
    let settings = Settings {
        shapes: config.security().redact_secrets,
        ..Settings::default()
    };
    let mut known = Vec::new();
    for setting in config.settings() {
        if let Some(value) = setting.value() {
            gather(value, &mut known);
        }
    }
    known.extend(config.terminal().docker.forwarded.values().cloned());
    // Entries that name their key by a variable hold it only here.
    let model = config.model();
    known.extend(
        model
            .providers
            .values()
            .filter_map(|provider| provider.api_key.clone()),
    );
    known.extend(
        model
            .fallbacks
            .iter()
            .filter_map(|model| model.api_key.clone()),
    );
    known.extend(
        model
            .auxiliary
            .values()
            .filter_map(|model| model.api_key.clone()),
    );
    known.extend(egress::secrets(config.egress()));
    Redactor::new(known, settings)
}

fn gather(value: &Value, known: &mut Vec<Secret>) {
    match value {
        Value::Secret(secret) => known.push(secret.clone()),
        Value::Pairs(pairs) => known.extend(pairs.values().cloned()),
        Value::Table(table) => table.values().for_each(|record| gather_all(record, known)),
        Value::Records(records) => records.iter().for_each(|record| gather_all(record, known)),
        _ => {}
    }
}

/// The credentials of an entry, such as the token of one of several bots.
fn gather_all(record: &Record, known: &mut Vec<Secret>) {
    record.values().for_each(|value| gather(value, known));
}
