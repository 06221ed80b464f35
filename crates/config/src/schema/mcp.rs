//! `mcp_servers`: tools of others.

use super::{DAY, SchemaKey, TEXTS, ValueShape, key, texts};
use crate::shape::{ListItem, LoneValues, RecordField};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![key(
        "mcp_servers",
        ValueShape::Table {
            fields: SERVER,
            lone_values: LoneValues::Refused,
        },
        "",
        "MCP servers whose tools the agent has, by name; programs run in the conversation's sandbox",
    )]
}

const SECONDS: ValueShape = ValueShape::Number {
    least: 1.0,
    most: DAY as f64,
};

const fn optional(name: &'static str, shape: ValueShape, about: &'static str) -> RecordField {
    RecordField {
        name,
        shape,
        required: false,
        about,
    }
}

const SERVER: &[RecordField] = &[
    optional(
        "command",
        ValueShape::Text,
        "the program of a server over stdio",
    ),
    optional("args", TEXTS, "its arguments"),
    optional(
        "env",
        ValueShape::Pairs,
        "its environment, besides that of the sandbox",
    ),
    optional(
        "expose_env",
        texts(ListItem::VariableName),
        "names in `env` that look like secrets and go into the sandbox all the same",
    ),
    optional("url", ValueShape::Text, "the address of a server over HTTP"),
    optional(
        "headers",
        ValueShape::Pairs,
        "headers of every request to it",
    ),
    optional("timeout", SECONDS, "seconds for one call (120)"),
    optional(
        "connect_timeout",
        SECONDS,
        "seconds for its start and the list of its tools (60)",
    ),
    optional("enabled", ValueShape::Flag, "whether it is used (true)"),
    optional(
        "tools",
        ValueShape::Tree,
        "`include` or `exclude`: lists of its tools, by its own names; `resources: false` and `prompts: false` \
         keep from reading those",
    ),
    optional(
        "run_on",
        ValueShape::OneOf(&["sandbox", "host"]),
        "`host` runs it on this machine, unsealed, with the rights of the gateway (sandbox)",
    ),
    optional(
        "transport",
        ValueShape::Text,
        "`sse`, which is refused, or nothing",
    ),
    optional(
        "auth",
        ValueShape::Text,
        "`oauth`: requests are made in the name of whoever logged in with `hermetic mcp login`",
    ),
    optional(
        "oauth",
        ValueShape::Pairs,
        "about that login: `client_id`, `client_secret`, `client_metadata_url`, `client_name`, `issuer`, `scope`, \
         `redirect_port`, `redirect_host`, `redirect_uri`, `timeout`",
    ),
    optional(
        "sampling",
        ValueShape::Tree,
        "has no effect: a server cannot ask the model here",
    ),
];
