//! Tools of others.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use hermetic_oauth::OAuthSettings;
use hermetic_types::Secret;

use super::egress::EgressConfig;
use super::mcp_login;
use super::pick::{SettingPicker, field, seconds_field, texts_field};
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};
use crate::wording::short;

const CALL_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// One entry of `mcp_servers` that is switched on.
#[derive(Clone, Debug)]
pub struct McpServerConfig {
    pub name: String,
    pub kind: McpServerKind,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
    pub resources: bool,
    pub prompts: bool,
    /// What is written about it and must never be shown, whether it can be used or not.
    pub secrets: Vec<Secret>,
}

#[derive(Clone, Debug)]
pub enum McpServerKind {
    /// In the conversation's sandbox, with no secret in its environment unless the operator spelled that out.
    Sandbox {
        words: Vec<String>,
        env: BTreeMap<String, String>,
    },
    /// On this machine.
    Host {
        words: Vec<String>,
        env: BTreeMap<String, Secret>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, Secret>,
        /// Where requests are made in somebody's name.
        login: Option<Box<OAuthSettings>>,
    },
    /// It cannot be used as it is written; why, and what to do.
    Refused(String),
}

pub(super) fn servers(
    pick: &SettingPicker<'_>,
    egress: &EgressConfig,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<McpServerConfig> {
    let written = pick.table("mcp_servers");
    let enabled = written
        .filter(|(_, record)| !matches!(record.get("enabled"), Some(SettingValue::Flag(false))));
    let servers = enabled.map(|(name, record)| {
        let kind = kind(record, egress).unwrap_or_else(McpServerKind::Refused);
        let warning = match &kind {
            McpServerKind::Refused(why) => Some(format!(
                "the MCP server `{}` is not used: {why}",
                short(name)
            )),
            McpServerKind::Host { .. } => Some(format!(
                "the MCP server `{}` runs on this machine, not in a sandbox: it can do whatever the \
                 gateway can; remove `run_on: host` to seal it",
                short(name)
            )),
            McpServerKind::Sandbox { .. } | McpServerKind::Http { .. } => None,
        };
        problems.extend(warning.map(|what| {
            let problem = ConfigProblem::warning(what).of_key(format!("mcp_servers.{name}"));
            match &record.place {
                Some(place) => problem.at(place),
                None => problem,
            }
        }));
        McpServerConfig {
            name: name.clone(),
            kind,
            timeout: seconds_field(record, "timeout").unwrap_or(CALL_TIMEOUT),
            connect_timeout: seconds_field(record, "connect_timeout").unwrap_or(CONNECT_TIMEOUT),
            include: named_tools(record, "include"),
            exclude: named_tools(record, "exclude").unwrap_or_default(),
            resources: offers(record, "resources"),
            prompts: offers(record, "prompts"),
            secrets: secrets(record, egress),
        }
    });
    servers.collect()
}

fn kind(record: &RecordValue, egress: &EgressConfig) -> Result<McpServerKind, String> {
    if field(record, "transport").is_some_and(|transport| transport == "sse") {
        return Err(
            "the old SSE transport is not spoken; give the address of its streamable HTTP"
                .to_owned(),
        );
    }
    match (field(record, "command"), field(record, "url")) {
        (None, Some(url)) => {
            let login = match wants_login(record) {
                true => Some(Box::new(mcp_login::login(&url, &pairs(record, "oauth"))?)),
                false => None,
            };
            Ok(McpServerKind::Http {
                url,
                headers: pairs(record, "headers"),
                login,
            })
        }
        (Some(_), None) if wants_login(record) => {
            Err("`auth: oauth` is for servers with a `url:`".to_owned())
        }
        (Some(command), None) => program(command, record, egress),
        (Some(_), Some(_)) | (None, None) => {
            Err("write either `command:` for a program or `url:` for an address".to_owned())
        }
    }
}

fn wants_login(record: &RecordValue) -> bool {
    field(record, "auth").is_some_and(|auth| auth == "oauth")
}

fn program(
    command: String,
    record: &RecordValue,
    egress: &EgressConfig,
) -> Result<McpServerKind, String> {
    let mut words = vec![command];
    words.extend(texts_field(record, "args"));
    if field(record, "run_on").is_some_and(|place| place == "host") {
        let env = pairs(record, "env");
        return Ok(McpServerKind::Host { words, env });
    }
    if let Some(reason) = secret_words(&words) {
        return Err(format!(
            "{reason}, and whatever runs in the sandbox could read it; name the host it is for under \
             gateway.egress.credentials, and the proxy puts it in, or move it to `env:`, spell it out with \
             expose_env, and have a shell hand it over (command: sh, args: [-c, 'exec program \"$NAME\"'])"
        ));
    }
    let env = environment_inside(record, egress)?;
    Ok(McpServerKind::Sandbox { words, env })
}

/// Why these words cannot stand on a command line in a sandbox.
pub(super) fn secret_words(words: &[String]) -> Option<String> {
    let mut pairs = words_with_next(words);
    let found = pairs.find_map(|(word, next)| secret_argument(word, next))?;
    Some(found.reason)
}

/// What of `env` goes into a sandbox: no secret, unless the operator spelled that out.
pub(super) fn environment_inside(
    record: &RecordValue,
    egress: &EgressConfig,
) -> Result<BTreeMap<String, String>, String> {
    let exposed = texts_field(record, "expose_env");
    let mut inside = BTreeMap::new();
    for (name, value) in pairs(record, "env") {
        if is_injected(&name, egress) {
            // The sandbox has a placeholder of that name already.
            continue;
        }
        if looks_secret(&name) && !exposed.contains(&name) {
            return Err(format!(
                "{name} looks like a secret, and whatever runs in the sandbox could read it; name the \
                 host it is for under gateway.egress.credentials (placeholder_env: {name}), and the \
                 proxy puts it in, or spell it out with expose_env: [{name}]"
            ));
        }
        if url_password(value.expose()).is_some() && !exposed.contains(&name) {
            return Err(format!(
                "{name} holds an address with a password, and whatever runs in the sandbox could read it; \
                 spell it out with expose_env: [{name}], or give an address without"
            ));
        }
        inside.insert(name, value.expose().to_owned());
    }
    Ok(inside)
}

fn is_injected(variable: &str, egress: &EgressConfig) -> bool {
    let mut credentials = egress.credentials.iter();
    credentials.any(|credential| credential.placeholder_env.as_deref() == Some(variable))
}

/// Of an environment only what is a secret by its name or by the operator's word: a value such as
/// `production` would be taken out of everything that anybody says. Of headers all but those that say
/// nothing of who asks, and the token besides the word before it.
fn secrets(record: &RecordValue, egress: &EgressConfig) -> Vec<Secret> {
    let exposed = texts_field(record, "expose_env");
    let mut secrets = Vec::new();
    let mut add = |text: &str| secrets.push(Secret::new(text));
    let words = texts_field(record, "args");
    for (word, next) in words_with_next(&words) {
        if let Some(found) = secret_argument(word, next) {
            add(found.value);
        }
    }
    let url = field(record, "url").unwrap_or_default();
    url_password(&url).into_iter().for_each(&mut add);
    for (name, value) in pairs(record, "env") {
        url_password(value.expose()).into_iter().for_each(&mut add);
        if looks_secret(&name) || exposed.contains(&name) || is_injected(&name, egress) {
            add(value.expose());
        }
    }
    if let Some(secret) = pairs(record, "oauth").get("client_secret") {
        add(secret.expose());
    }
    for (name, value) in pairs(record, "headers") {
        if says_nothing_secret(&name) {
            continue;
        }
        let token = value.expose().rsplit_once(' ');
        token.into_iter().for_each(|(_, token)| add(token));
        add(value.expose());
    }
    secrets
}

fn says_nothing_secret(header: &str) -> bool {
    const PLAIN: [&str; 10] = [
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-type",
        "mcp-protocol-version",
        "origin",
        "referer",
        "user-agent",
    ];
    PLAIN.iter().any(|plain| header.eq_ignore_ascii_case(plain))
}

/// A secret on a command line.
struct SecretArgument<'a> {
    value: &'a str,
    /// Without the secret.
    reason: String,
}

fn words_with_next(words: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let next = words.iter().skip(1).map(String::as_str);
    words
        .iter()
        .map(String::as_str)
        .zip(next.chain(iter::once("")))
}

/// `--api-key=…`, `--api-key …`, `API_KEY=…`, `Authorization: …`, `scheme://user:password@…`. What a shell
/// has yet to put in, such as `$API_KEY`, is no secret.
fn secret_argument<'a>(word: &'a str, next: &'a str) -> Option<SecretArgument<'a>> {
    let named = |name: &str, value: &'a str| {
        let value = value.trim().trim_matches(['"', '\'']);
        let is_written = !value.is_empty() && !value.starts_with('$');
        is_written.then(|| SecretArgument {
            value: value.rsplit_once(' ').map_or(value, |(_, token)| token),
            reason: format!("its argument {} looks like a secret", short(name)),
        })
    };
    if let Some(value) = url_password(word) {
        return Some(SecretArgument {
            value,
            reason: "one of its arguments is an address with a password".to_owned(),
        });
    }
    let is_variable = |name: &str| {
        let mut letters = name.bytes();
        letters
            .all(|letter| letter == b'_' || letter.is_ascii_uppercase() || letter.is_ascii_digit())
    };
    let value_of = word.split_once('=');
    match value_of {
        Some((name, value)) if name.starts_with('-') && ends_secret(name) => {
            return named(name, value);
        }
        Some((name, value)) if is_variable(name) && looks_secret(name) => {
            return named(name, value);
        }
        None if word.starts_with('-') && ends_secret(word) && !next.starts_with('-') => {
            return named(word, next);
        }
        _ => {}
    }
    // A header, by itself or behind `--header=`.
    let header = value_of.map_or(word, |(name, value)| match name.starts_with('-') {
        true => value,
        false => word,
    });
    let (name, value) = header.split_once(':')?;
    let is_name = |name: &str| {
        let mut letters = name.bytes();
        letters.all(|letter| letter == b'-' || letter.is_ascii_alphanumeric())
    };
    match is_name(name) && ends_secret(name) {
        true => named(name, value),
        false => None,
    }
}

/// The password in the first `scheme://user:password@` of a text.
fn url_password(text: &str) -> Option<&str> {
    let rests = text
        .match_indices("://")
        .map(|(at, mark)| &text[at + mark.len()..]);
    let mut passwords = rests.filter_map(|rest| {
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c));
        let authority = &rest[..end.unwrap_or(rest.len())];
        let (login, _) = authority.rsplit_once('@')?;
        let (_, password) = login.split_once(':')?;
        (!password.is_empty() && !password.starts_with('$')).then_some(password)
    });
    passwords.next()
}

/// Whether the last word of an option's or a header's name is one for a secret: `--api-key` is,
/// `--key-file` is none.
fn ends_secret(name: &str) -> bool {
    const LAST: [&str; 17] = [
        "APIKEY",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "CREDENTIAL",
        "CREDENTIALS",
        "CREDS",
        "DSN",
        "KEY",
        "PASS",
        "PASSWD",
        "PASSWORD",
        "PAT",
        "PWD",
        "SECRET",
        "TOKEN",
        "WEBHOOK",
    ];
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
    LAST.iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// The words that Hermes takes for a secret in a name, and some more.
fn looks_secret(name: &str) -> bool {
    const PARTS: [&str; 14] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "CREDS",
        "AUTH",
        "DSN",
        "WEBHOOK",
        "BEARER",
        "COOKIE",
        "DATABASE_URL",
        "CONNECTION_STRING",
    ];
    // Too short to be looked for within words: `PATH`, `COMPASS`.
    const WORDS: [&str; 3] = ["PASS", "PWD", "PAT"];
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    // The shell's own word for where it is.
    name != "PWD"
        && (PARTS.iter().any(|part| name.contains(part))
            || name.ends_with("_URI")
            || words.any(|word| WORDS.contains(&word)))
}

fn pairs(record: &RecordValue, name: &str) -> BTreeMap<String, Secret> {
    match record.get(name) {
        Some(SettingValue::Pairs(pairs)) => pairs.clone(),
        _ => BTreeMap::new(),
    }
}

/// Unless `tools:` says otherwise.
fn offers(record: &RecordValue, what: &str) -> bool {
    let Some(SettingValue::Tree(tree)) = record.get("tools") else {
        return true;
    };
    match tree.get(what) {
        Some(serde_json::Value::String(text)) => text != "false",
        said => said != Some(&serde_json::Value::Bool(false)),
    }
}

/// A list, or one name instead of it.
fn named_tools(record: &RecordValue, list: &str) -> Option<Vec<String>> {
    let Some(SettingValue::Tree(tree)) = record.get("tools") else {
        return None;
    };
    match tree.get(list)? {
        serde_json::Value::String(one) => Some(vec![one.clone()]),
        serde_json::Value::Array(many) => {
            let names = many.iter().filter_map(serde_json::Value::as_str);
            Some(names.map(str::to_owned).collect())
        }
        _ => None,
    }
}
