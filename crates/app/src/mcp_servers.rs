//! The MCP servers whose tools the agent has, from the configuration.

use std::collections::BTreeMap;
use std::env;

use hermetic_config::{Config, McpServerConfig, McpServerKind};
use hermetic_tools::{McpServerPlace, McpServerSettings};
use hermetic_types::Secret;

/// What a program on the host gets of the gateway's own environment.
const HOST_VARIABLES: [&str; 8] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR",
];

pub(crate) fn mcp_servers(config: &Config) -> Vec<McpServerSettings> {
    let servers = config.mcp_servers().iter();
    servers.map(settings).collect()
}

/// What must never be shown, besides the values as they are written: a header holds a word and a token.
pub(crate) fn secrets(config: &Config) -> Vec<Secret> {
    let headers = config.mcp_servers().iter().flat_map(|server| {
        let headers = match &server.kind {
            McpServerKind::Http { headers, .. } => Some(headers.values()),
            _ => None,
        };
        headers.into_iter().flatten()
    });
    let tokens = headers.filter_map(|value| value.expose().rsplit_once(' '));
    tokens.map(|(_, token)| Secret::new(token)).collect()
}

fn settings(server: &McpServerConfig) -> McpServerSettings {
    McpServerSettings {
        name: server.name.clone(),
        place: match &server.kind {
            McpServerKind::Sandbox { words, env } => McpServerPlace::Sandbox {
                words: words.clone(),
                env: env.clone(),
            },
            McpServerKind::Host { words, env } => McpServerPlace::Host {
                words: words.clone(),
                env: host_env(env),
            },
            McpServerKind::Http { url, headers } => McpServerPlace::Http {
                url: url.clone(),
                headers: headers.clone().into_iter().collect(),
            },
            McpServerKind::Refused(why) => McpServerPlace::Refused(why.clone()),
        },
        timeout: server.timeout,
        connect_timeout: server.connect_timeout,
        include: server.include.clone(),
        exclude: server.exclude.clone(),
    }
}

fn host_env(written: &BTreeMap<String, Secret>) -> BTreeMap<String, Secret> {
    let own = HOST_VARIABLES.into_iter();
    let own = own.filter_map(|name| Some((name.to_owned(), Secret::new(env::var(name).ok()?))));
    own.chain(written.clone()).collect()
}
