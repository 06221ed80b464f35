//! `agent.acp`: agents of others.

use super::{SchemaKey, TEXTS, ValueShape, key, texts};
use crate::shape::{ListItem, RecordField};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "agent.acp",
            ValueShape::Records {
                fields: AGENT,
                lone: Some("name"),
            },
            "",
            "who answers in place of our own agent, by its name or as a command that speaks the Agent Client \
             Protocol; it runs in the conversation's sandbox. Of several the first answers, and `/agent` \
             chooses among them",
        ),
        key(
            "display.show_reasoning",
            ValueShape::Flag,
            "false",
            "show what an agent of others thinks while its answer grows",
        ),
    ]
}

const fn optional(name: &'static str, shape: ValueShape, about: &'static str) -> RecordField {
    RecordField {
        name,
        shape,
        required: false,
        about,
    }
}

const AGENT: &[RecordField] = &[
    optional(
        "name",
        ValueShape::Text,
        "its name: one that `/agent` lists, or what a command of yours is to be called",
    ),
    optional(
        "command",
        TEXTS,
        "the program and its arguments, as seen in the sandbox",
    ),
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
    optional(
        "hosts",
        texts(ListItem::Host),
        "hosts that conversations with it may reach besides",
    ),
    optional("mode", ValueShape::Text, "the mode its sessions are set to"),
    optional(
        "model",
        ValueShape::Text,
        "the model its sessions are set to, by the agent's own name for it",
    ),
    optional(
        "authenticate",
        ValueShape::Text,
        "the id of the login that it wants to be told",
    ),
];
