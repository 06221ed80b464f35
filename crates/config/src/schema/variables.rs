//! What only a variable says, mostly credentials.
//!
//! Top-level scalars of the file count as variables that nobody set, so each of these can also be
//! written there under its own name.

use super::{COMMA_TEXTS, Key, Shape, count, key};

pub(super) fn keys() -> Vec<Key> {
    let mut keys: Vec<Key> = PROVIDER_KEYS
        .into_iter()
        .chain(OTHER_SECRETS)
        .map(|name| variable(name, Shape::Secret, "", "credential"))
        .collect();
    keys.extend([
        variable(
            "MODAL_SERVER_URL",
            Shape::Text,
            "",
            "Modal's address; its own if not written",
        ),
        variable(
            "MODAL_ENVIRONMENT",
            Shape::Text,
            "",
            "environment at Modal; the workspace's default if not written",
        ),
        variable(
            "MODAL_PROFILE",
            Shape::Text,
            "",
            "profile of ~/.modal.toml; the active one if not written",
        ),
        variable(
            "MODAL_CONFIG_PATH",
            Shape::Text,
            "",
            "file instead of ~/.modal.toml",
        ),
        variable(
            "GATEWAY_ALLOWED_USERS",
            COMMA_TEXTS,
            "",
            "users who may write, on every platform; `*` for everybody",
        ),
        variable(
            "GATEWAY_ALLOW_ALL_USERS",
            Shape::Flag,
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
            Shape::Text,
            "",
            "the docker or podman program",
        ),
        variable(
            "MESSAGING_CWD",
            Shape::Text,
            "",
            "old name of terminal.cwd for chats",
        ),
    ]);
    keys
}

/// Names by which a model's credential is known.
pub(crate) const PROVIDER_KEYS: [&str; 10] = [
    "OPENROUTER_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "NOUS_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
];

const OTHER_SECRETS: [&str; 3] = ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET", "DAYTONA_API_KEY"];

fn variable(name: &'static str, shape: Shape, fallback: &'static str, about: &'static str) -> Key {
    key(name, shape, fallback, about).overruled_by(name)
}
