//! The only way out.

use std::path::PathBuf;
use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;

use super::pick::{SettingPicker, field, texts_field, words, written_field};
use super::proxy;
use crate::grammar;
use crate::problem::ConfigProblem;
use crate::value::RecordValue;
use crate::wording::short;

const CREDENTIALS: &str = "gateway.egress.credentials";

#[derive(Clone, Debug)]
pub struct EgressConfig {
    pub mode: EgressMode,
    /// Exact or `*.suffix`, with `:port` for other ports, `tcp://` or ` in RANGE`.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub presets: Vec<String>,
    pub additions: Vec<EgressAddition>,
    pub ask: bool,
    pub ask_timeout: Duration,
    pub allow_private: bool,
    pub budget_bytes: Option<u64>,
    pub credentials: Vec<EgressCredential>,
    /// The proxy that what leaves sandboxes goes through; the gateway's own where none is written.
    pub upstream_proxy: Option<UpstreamProxy>,
    pub upstream_names: UpstreamNames,
}

/// Who looks up the names of what goes through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamNames {
    /// Both: addresses are checked here, and the proxy is told the name.
    Checked,
    /// We: the proxy is told the checked address.
    Pinned,
    /// The proxy alone: only names are checked.
    Proxy,
}

words!(UpstreamNames { "checked" => Checked, "pinned" => Pinned, "proxy" => Proxy });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressMode {
    Allowlist,
    Open,
    Closed,
}

words!(EgressMode { "allowlist" => Allowlist, "open" => Open, "closed" => Closed });

/// More rules, for some.
#[derive(Clone, Debug)]
pub struct EgressAddition {
    /// A platform or a conversation; the proxy reads it.
    pub whom: String,
    pub mode: Option<EgressMode>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub presets: Vec<String>,
}

/// A credential that the proxy puts in and the sandbox never holds.
#[derive(Clone, Debug)]
pub struct EgressCredential {
    pub host: String,
    pub header: String,
    /// The word before the credential; none if empty.
    pub scheme: String,
    pub source: CredentialSource,
    /// The variable in which the sandbox finds a placeholder.
    pub placeholder_env: Option<String>,
    /// The paths of the host that it goes to, and what is below them; all where empty.
    pub paths: Vec<String>,
    /// Everybody's where absent.
    pub whose: Option<String>,
}

#[derive(Clone, Debug)]
pub enum CredentialSource {
    Value(Secret),
    File(PathBuf),
}

impl EgressConfig {
    pub(super) fn build(
        pick: &SettingPicker<'_>,
        own_proxy: Option<&UpstreamProxy>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Self {
        Self {
            mode: pick.choice("gateway.egress.mode"),
            allow: pick.texts("gateway.egress.allow"),
            deny: pick.texts("gateway.egress.deny"),
            presets: pick.texts("gateway.egress.presets"),
            additions: pick
                .records("gateway.egress.additions")
                .iter()
                .filter_map(addition)
                .collect(),
            ask: pick.flag("gateway.egress.ask"),
            ask_timeout: pick.seconds("gateway.egress.ask_timeout"),
            allow_private: pick.flag("gateway.egress.allow_private"),
            budget_bytes: pick.maybe_bytes("gateway.egress.budget_bytes"),
            credentials: pick
                .records(CREDENTIALS)
                .iter()
                .filter_map(|record| credential(pick, record, problems))
                .collect(),
            upstream_proxy: proxy::of_sandboxes(pick, own_proxy, problems),
            upstream_names: pick.choice("gateway.egress.upstream_names"),
        }
    }
}

fn addition(record: &RecordValue) -> Option<EgressAddition> {
    Some(EgressAddition {
        // Its absence was reported when the file was read.
        whom: field(record, "for")?,
        mode: field(record, "mode").and_then(|word| word.parse().ok()),
        allow: texts_field(record, "allow"),
        deny: texts_field(record, "deny"),
        presets: texts_field(record, "presets"),
    })
}

fn credential(
    pick: &SettingPicker<'_>,
    record: &RecordValue,
    problems: &mut Vec<ConfigProblem>,
) -> Option<EgressCredential> {
    // Its absence was reported when the file was read.
    let host = field(record, "host")?;
    let mut wrong = |what: String, help: &str| {
        let problem = pick.wrong(CREDENTIALS, what).help(help);
        problems.push(match &record.place {
            Some(place) => problem.at(place),
            None => problem,
        });
    };
    // Whoever owns one of the names below a suffix would be given it.
    if !grammar::is_host(&host) || host.contains('*') {
        wrong(
            format!(
                "`{}` is not a host that can have a credential",
                short(&host)
            ),
            "write one exact name, so that the credential goes nowhere else",
        );
        return None;
    }
    let variable = field(record, "value_env");
    let source = match (variable.clone(), field(record, "value_file")) {
        (Some(name), None) => match pick.variable(&name) {
            Some(value) => CredentialSource::Value(Secret::new(value)),
            None => {
                wrong(
                    format!("the variable {} of {host} is not set", short(&name)),
                    "set it in .env or the environment",
                );
                return None;
            }
        },
        (None, Some(file)) => CredentialSource::File(pick.path_of(&file)),
        (None, None) | (Some(_), Some(_)) => {
            wrong(
                format!("the credential of {host} needs exactly one source"),
                "write either value_env or value_file",
            );
            return None;
        }
    };
    Some(EgressCredential {
        host,
        header: field(record, "header").unwrap_or_else(|| "authorization".to_owned()),
        scheme: written_field(record, "scheme").unwrap_or_else(|| "Bearer".to_owned()),
        source,
        // Programs look for a token where they look for it outside.
        placeholder_env: field(record, "placeholder_env").or(variable),
        paths: texts_field(record, "paths"),
        whose: field(record, "for"),
    })
}
