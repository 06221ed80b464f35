//! The MCP servers whose tools the agent has, from the configuration.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use hermetic_config::{Config, McpServerConfig, McpServerKind};
use hermetic_oauth::{AuthorityClient, BearerLogin, LoginFile};
use hermetic_redact::Redactor;
use hermetic_tools::{McpServerPlace, McpServerSettings};
use hermetic_types::{Secret, SharedClock};

/// What a program on the host gets of the gateway's own environment.
const HOST_VARIABLES: [&str; 8] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR",
];

/// Where logins are kept, below the state folder: no sandbox sees it.
const LOGINS: &str = "mcp-logins";

pub(crate) fn mcp_servers(
    config: &Config,
    redactor: &Redactor,
    clock: &SharedClock,
) -> Vec<McpServerSettings> {
    let http = AuthorityClient::new(config.gateway().proxy.as_ref());
    let http = http.map_err(|error| error.to_string());
    let servers = config.mcp_servers().iter();
    let login = |server: &McpServerConfig, url: &str| {
        let file = login_file(config, &server.name);
        let http = http.clone()?;
        let (redactor, clock) = (redactor.clone(), Arc::clone(clock));
        Ok(BearerLogin::new(
            &server.name,
            url,
            file,
            http,
            redactor,
            clock,
        ))
    };
    servers.map(|server| settings(server, login)).collect()
}

/// The file with the login of a server.
pub fn login_file(config: &Config, server: &str) -> LoginFile {
    LoginFile::new(config.home().state().join(LOGINS), server)
}

/// What must never be shown.
pub(crate) fn secrets(config: &Config) -> impl Iterator<Item = Secret> {
    let servers = config.mcp_servers().iter();
    servers.flat_map(|server| {
        // One that cannot be read is said where it is used.
        let tokens = login_file(config, &server.name).secrets();
        let written = server.secrets.iter().cloned();
        written.chain(tokens.unwrap_or_default())
    })
}

fn settings(
    server: &McpServerConfig,
    login_of: impl Fn(&McpServerConfig, &str) -> Result<BearerLogin, String>,
) -> McpServerSettings {
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
            McpServerKind::Http {
                url,
                headers,
                login,
            } => match login.as_ref().map(|_| login_of(server, url)).transpose() {
                Ok(login) => McpServerPlace::Http {
                    url: url.clone(),
                    headers: headers.clone().into_iter().collect(),
                    login,
                },
                Err(why) => McpServerPlace::Refused(why),
            },
            McpServerKind::Refused(why) => McpServerPlace::Refused(why.clone()),
        },
        timeout: server.timeout,
        connect_timeout: server.connect_timeout,
        include: server.include.clone(),
        exclude: server.exclude.clone(),
        resources: server.resources,
        prompts: server.prompts,
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
