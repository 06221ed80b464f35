//! The only way out.

use std::path::PathBuf;
use std::time::Duration;

use hermetic_types::Secret;

use super::pick::{Pick, field, words};
use crate::problem::Problem;
use crate::tree::short;
use crate::value::Record;

const CREDENTIALS: &str = "gateway.egress.credentials";

#[derive(Clone, Debug)]
pub struct Egress {
    pub mode: EgressMode,
    /// Exact or `*.suffix`, with `:port` for other ports.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub presets: Vec<String>,
    pub ask: bool,
    pub ask_timeout: Duration,
    pub allow_private: bool,
    pub budget_bytes: Option<u64>,
    pub credentials: Vec<EgressCredential>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressMode {
    Allowlist,
    Open,
    Closed,
}

words!(EgressMode { "allowlist" => Allowlist, "open" => Open, "closed" => Closed });

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
}

#[derive(Clone, Debug)]
pub enum CredentialSource {
    Value(Secret),
    File(PathBuf),
}

impl Egress {
    pub(super) fn build(pick: &Pick<'_>, problems: &mut Vec<Problem>) -> Self {
        const HOSTS: [&str; 2] = ["gateway.egress.allow", "gateway.egress.deny"];
        for key in HOSTS {
            for host in pick.texts(key).iter().filter(|host| !is_host(host)) {
                problems.push(
                    pick.wrong(key, format!("`{}` is not a host", short(host)))
                        .help("write a name, `*.name` or `name:port`, without https:// and path"),
                );
            }
        }
        Self {
            mode: pick.choice("gateway.egress.mode"),
            allow: pick.texts(HOSTS[0]),
            deny: pick.texts(HOSTS[1]),
            presets: pick.texts("gateway.egress.presets"),
            ask: pick.flag("gateway.egress.ask"),
            ask_timeout: pick.seconds("gateway.egress.ask_timeout"),
            allow_private: pick.flag("gateway.egress.allow_private"),
            budget_bytes: pick.maybe_bytes("gateway.egress.budget_bytes"),
            credentials: pick
                .records(CREDENTIALS)
                .iter()
                .filter_map(|record| credential(pick, record, problems))
                .collect(),
        }
    }
}

fn credential(
    pick: &Pick<'_>,
    record: &Record,
    problems: &mut Vec<Problem>,
) -> Option<EgressCredential> {
    // Its absence was reported when the file was read.
    let host = field(record, "host")?;
    let mut wrong = |what: String, help: &str| {
        problems.push(pick.wrong(CREDENTIALS, what).help(help));
    };
    if !is_host(&host) || host.contains('*') {
        wrong(
            format!(
                "`{}` is not a host that can have a credential",
                short(&host)
            ),
            "write one exact name, so that the credential goes nowhere else",
        );
        return None;
    }
    let source = match (field(record, "value_env"), field(record, "value_file")) {
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
        scheme: field(record, "scheme").unwrap_or_else(|| "Bearer".to_owned()),
        source,
        placeholder_env: field(record, "placeholder_env"),
    })
}

/// A name, a name with a port, or `*.name`. The proxy has the final word.
fn is_host(text: &str) -> bool {
    let (name, port) = text.rsplit_once(':').unwrap_or((text, "443"));
    let name = name.strip_prefix("*.").unwrap_or(name);
    let name_fits = !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        });
    name_fits && port.parse::<u16>().is_ok_and(|port| port > 0)
}
