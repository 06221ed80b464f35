//! `gateway.egress`: the only way out.

use super::{DAY, SchemaKey, TEXTS, ValueShape, key, seconds, texts};
use crate::shape::{ListItem, RecordField};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "gateway.egress.mode",
            ValueShape::OneOf(&["allowlist", "open", "closed"]),
            "allowlist",
            "what a sandbox may reach",
        ),
        key(
            "gateway.egress.allow",
            texts(ListItem::Host),
            "",
            "hosts, exact or as `*.suffix`, with `:port` for other ports",
        ),
        key(
            "gateway.egress.deny",
            texts(ListItem::Host),
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
            ValueShape::Records {
                fields: ADDITION,
                lone: None,
            },
            "",
            "more rules for some: a platform (`telegram`) or a conversation (`telegram:dm:42`)",
        ),
        key(
            "gateway.egress.ask",
            ValueShape::Flag,
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
            ValueShape::Flag,
            "false",
            "let the hosts of `allow` resolve to private addresses",
        ),
        key(
            "gateway.egress.budget_bytes",
            ValueShape::Size { unit: 1, least: 1 },
            "",
            "bytes one conversation may send and receive, until `/destroy`",
        ),
        key(
            "gateway.egress.credentials",
            ValueShape::Records {
                fields: CREDENTIAL,
                lone: None,
            },
            "",
            "credentials put in on the way out, so that the sandbox never holds them",
        ),
        key(
            "gateway.egress.upstream_proxy",
            ValueShape::Text,
            "",
            "the HTTP proxy that what leaves sandboxes goes through; gateway.proxy if not written, `none` for none",
        )
        .overruled_by("HERMETIC_EGRESS_PROXY"),
        key(
            "gateway.egress.upstream_names",
            ValueShape::OneOf(&["checked", "pinned", "proxy"]),
            "checked",
            "who looks names up behind a proxy: we as well (`checked`), we alone (`pinned`), or the proxy alone (`proxy`)",
        )
        .overruled_by("HERMETIC_EGRESS_NAMES"),
    ]
}

const ADDITION: &[RecordField] = &[
    RecordField {
        name: "for",
        shape: ValueShape::Text,
        required: true,
        about: "whom: `telegram`, `telegram:dm:42`, `cli:work`",
    },
    RecordField {
        name: "mode",
        shape: ValueShape::OneOf(&["allowlist", "closed"]),
        required: false,
        about: "counts where it is stricter than the mode of all",
    },
    RecordField {
        name: "allow",
        shape: texts(ListItem::Host),
        required: false,
        about: "hosts that these may reach as well",
    },
    RecordField {
        name: "deny",
        shape: texts(ListItem::Host),
        required: false,
        about: "hosts that these may not reach",
    },
    RecordField {
        name: "presets",
        shape: TEXTS,
        required: false,
        about: "named lists of hosts",
    },
];

const CREDENTIAL: &[RecordField] = &[
    RecordField {
        name: "host",
        shape: ValueShape::Text,
        required: true,
        about: "the host it belongs to",
    },
    RecordField {
        name: "header",
        shape: ValueShape::Text,
        required: false,
        about: "the header it goes into (authorization)",
    },
    RecordField {
        name: "scheme",
        shape: ValueShape::Text,
        required: false,
        about: "the word before it (Bearer)",
    },
    RecordField {
        name: "value_env",
        shape: ValueShape::Text,
        required: false,
        about: "the variable that holds it",
    },
    RecordField {
        name: "value_file",
        shape: ValueShape::Text,
        required: false,
        about: "the file that holds it",
    },
    RecordField {
        name: "placeholder_env",
        shape: ValueShape::Text,
        required: false,
        about: "the variable in which the sandbox finds a placeholder (that of value_env)",
    },
    RecordField {
        name: "paths",
        shape: TEXTS,
        required: false,
        about: "the paths it is for, each with all below it (all); other paths of the host are refused",
    },
    RecordField {
        name: "for",
        shape: ValueShape::Text,
        required: false,
        about: "whose it is, as in additions (everybody's)",
    },
];
