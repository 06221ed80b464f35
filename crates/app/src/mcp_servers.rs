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

/// What must never be shown.
pub(crate) fn secrets(config: &Config) -> impl Iterator<Item = Secret> {
    let servers = config.mcp_servers().iter();
    servers.flat_map(|server| server.secrets.iter().cloned())
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

#[cfg(test)]
#[cfg(feature = "telegram")]
mod tests {
    use crate::platforms::tests::config;

    const SERVERS: &str = "
mcp_servers:
  here:
    command: x
    env: {NODE_ENV: production, API_TOKEN: letters-of-one, PLAIN: letters-of-two}
    expose_env: [API_TOKEN, PLAIN]
  refused: {command: x, env: {API_TOKEN: letters-of-three, LOG_LEVEL: verbose}}
  there:
    url: http://mcp.test/mcp
    headers: {Accept: application/json, User-Agent: somebody/1.0, Authorization: Bearer letters-of-four}
  off: {command: x, enabled: false, env: {API_TOKEN: swordfish}}
";

    #[test]
    fn what_is_written_of_servers_is_a_secret_where_its_name_says_so() {
        let redactor = crate::redactor(&config(SERVERS));
        for plain in [
            "production",
            "verbose",
            "application/json",
            "somebody/1.0",
            "swordfish",
        ] {
            let said = format!("it is {plain} here");
            assert_eq!(redactor.redact(said.clone()).as_str(), said);
        }
        for secret in [
            "letters-of-one",
            "letters-of-two",
            "letters-of-three",
            "letters-of-four",
        ] {
            let said = redactor.redact(format!("it is {secret} here")).into_inner();
            assert!(!said.contains(secret), "{said}");
        }
    }
}
