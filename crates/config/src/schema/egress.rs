//! `gateway.egress`: the only way out.

use super::{DAY, Key, Shape, TEXTS, key, seconds, texts};
use crate::shape::{Field, Item};

pub(super) fn keys() -> Vec<Key> {
    vec![
        key(
            "gateway.egress.mode",
            Shape::OneOf(&["allowlist", "open", "closed"]),
            "allowlist",
            "what a sandbox may reach",
        ),
        key(
            "gateway.egress.allow",
            texts(Item::Host),
            "",
            "hosts, exact or as `*.suffix`, with `:port` for other ports",
        ),
        key(
            "gateway.egress.deny",
            texts(Item::Host),
            "",
            "hosts that stay closed whatever else says yes",
        ),
        key(
            "gateway.egress.presets",
            TEXTS,
            "",
            "named lists of hosts; `hermetic egress presets` shows them",
        ),
        key(
            "gateway.egress.additions",
            Shape::Records {
                fields: ADDITION,
                lone: None,
            },
            "",
            "more rules for some: a platform (`telegram`) or a conversation (`telegram:dm:42`)",
        ),
        key(
            "gateway.egress.ask",
            Shape::Flag,
            "false",
            "ask in the chat about a host that no rule names",
        ),
        key(
            "gateway.egress.ask_timeout",
            seconds(DAY),
            "60",
            "seconds to answer; silence is no",
        ),
        key(
            "gateway.egress.allow_private",
            Shape::Flag,
            "false",
            "let the hosts of `allow` resolve to private addresses",
        ),
        key(
            "gateway.egress.budget_bytes",
            Shape::Size { unit: 1, least: 1 },
            "",
            "bytes one conversation may send and receive, until `/destroy`",
        ),
        key(
            "gateway.egress.credentials",
            Shape::Records {
                fields: CREDENTIAL,
                lone: None,
            },
            "",
            "credentials put in on the way out, so that the sandbox never holds them",
        ),
    ]
}

const ADDITION: &[Field] = &[
    Field {
        name: "for",
        shape: Shape::Text,
        required: true,
        about: "whom: `telegram`, `telegram:dm:42`, `cli:work`",
    },
    Field {
        name: "mode",
        shape: Shape::OneOf(&["allowlist", "closed"]),
        required: false,
        about: "counts where it is stricter than the mode of all",
    },
    Field {
        name: "allow",
        shape: texts(Item::Host),
        required: false,
        about: "hosts that these may reach as well",
    },
    Field {
        name: "deny",
        shape: texts(Item::Host),
        required: false,
        about: "hosts that these may not reach",
    },
    Field {
        name: "presets",
        shape: TEXTS,
        required: false,
        about: "named lists of hosts",
    },
];

const CREDENTIAL: &[Field] = &[
    Field {
        name: "host",
        shape: Shape::Text,
        required: true,
        about: "the host it belongs to",
    },
    Field {
        name: "header",
        shape: Shape::Text,
        required: false,
        about: "the header it goes into (authorization)",
    },
    Field {
        name: "scheme",
        shape: Shape::Text,
        required: false,
        about: "the word before it (Bearer)",
    },
    Field {
        name: "value_env",
        shape: Shape::Text,
        required: false,
        about: "the variable that holds it",
    },
    Field {
        name: "value_file",
        shape: Shape::Text,
        required: false,
        about: "the file that holds it",
    },
    Field {
        name: "placeholder_env",
        shape: Shape::Text,
        required: false,
        about: "the variable in which the sandbox finds a placeholder (that of value_env)",
    },
    Field {
        name: "for",
        shape: Shape::Text,
        required: false,
        about: "whose it is, as in additions (everybody's)",
    },
];
