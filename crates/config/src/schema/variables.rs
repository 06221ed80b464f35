//! What only a variable says, mostly credentials.
//!
//! Top-level scalars of the file count as variables that nobody set, so each of these can also be
//! written there under its own name.

use super::{COMMA_TEXTS, SchemaKey, ValueShape, count, key};
use crate::providers::{address_variables, key_variables};

pub(super) fn keys() -> Vec<SchemaKey> {
    let mut keys: Vec<SchemaKey> = key_variables()
        .into_iter()
        .chain(OTHER_SECRETS)
        .map(|name| variable(name, ValueShape::Secret, "", "credential"))
        .collect();
    keys.extend(address_variables().into_iter().map(|name| {
        variable(
            name,
            ValueShape::Text,
            "",
            "another address of that provider",
        )
    }));
    keys.extend([
        variable(
            "MODAL_SERVER_URL",
            ValueShape::Text,
            "",
            "Modal's address; its own if not written",
        ),
        variable(
            "MODAL_ENVIRONMENT",
            ValueShape::Text,
            "",
            "environment at Modal; the workspace's default if not written",
        ),
        variable(
            "MODAL_PROFILE",
            ValueShape::Text,
            "",
            "profile of ~/.modal.toml; the active one if not written",
        ),
        variable(
            "MODAL_CONFIG_PATH",
            ValueShape::Text,
            "",
            "file instead of ~/.modal.toml",
        ),
        variable(
            "SEARXNG_URL",
            ValueShape::Text,
            "",
            "the SearXNG that searches the web",
        ),
        variable(
            "TAVILY_BASE_URL",
            ValueShape::Text,
            "",
            "another address of Tavily",
        ),
        variable(
            "GATEWAY_ALLOWED_USERS",
            COMMA_TEXTS,
            "",
            "users who may write, on every platform; `*` for everybody",
        ),
        variable(
            "GATEWAY_ALLOW_ALL_USERS",
            ValueShape::Flag,
            "false",
            "let everybody write, on every platform",
        ),
        variable(
            "TERMINAL_MAX_FOREGROUND_TIMEOUT",
            count(1, 86_400),
            "600",
            "the longest timeout a command may ask for",
        ),
        variable(
            "HERMES_DOCKER_BINARY",
            ValueShape::Text,
            "",
            "the docker or podman program",
        ),
        variable(
            "MESSAGING_CWD",
            ValueShape::Text,
            "",
            "old name of terminal.cwd for chats",
        ),
    ]);
    keys
}

const OTHER_SECRETS: [&str; 7] = [
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "DAYTONA_API_KEY",
    "BRAVE_SEARCH_API_KEY",
    "TAVILY_API_KEY",
    "EXA_API_KEY",
    "VOICE_TOOLS_OPENAI_KEY",
];

fn variable(
    name: &'static str,
    shape: ValueShape,
    fallback: &'static str,
    about: &'static str,
) -> SchemaKey {
    key(name, shape, fallback, about).overruled_by(name)
}
