//! What is taken out of everything that leaves, the log included: every secret the configuration
//! holds.

use hermetic_config::{Config, RecordValue, SettingValue};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::Secret;

use super::{StorePlace, agents, egress, mcp_servers, platforms};

pub fn redactor(config: &Config) -> Redactor {
    let settings = RedactorSettings {
        shapes: config.security().redact_secrets,
        ..RedactorSettings::default()
    };
    let mut known = Vec::new();
    // What is a secret of an MCP server, and what is not, is said below. An agent of others is given none.
    let settings_of_all = config.settings().iter();
    let all_secret =
        settings_of_all.filter(|one| !["mcp_servers", "agent.acp"].contains(&one.name()));
    for setting in all_secret {
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
    known.extend(platforms::proxy_secrets(config));
    known.extend(mcp_servers::secrets(config));
    // A variable may hold them, which is no setting of ours.
    let traces = config.gateway().traces.iter();
    known.extend(traces.flat_map(|traces| traces.headers.values().cloned()));
    // Of agents that are not configured too: somebody can choose one of them with `/agent` later,
    // and this redactor is made once.
    known.extend(agents::secrets(config));
    known.extend(StorePlace::password(config));
    Redactor::new(known, settings)
}

fn gather(value: &SettingValue, known: &mut Vec<Secret>) {
    match value {
        SettingValue::Secret(secret) => known.push(secret.clone()),
        SettingValue::Pairs(pairs) => known.extend(pairs.values().cloned()),
        SettingValue::Table(table) => table.values().for_each(|record| gather_all(record, known)),
        SettingValue::Records(records) => {
            records.iter().for_each(|record| gather_all(record, known));
        }
        _ => {}
    }
}

/// The credentials of an entry, such as the token of one of several bots.
fn gather_all(record: &RecordValue, known: &mut Vec<Secret>) {
    record.values().for_each(|value| gather(value, known));
}
