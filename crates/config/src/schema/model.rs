//! `model:` and its relatives.

use super::{Key, Shape, count, key};
use crate::shape::{Field, LoneValues};

pub(super) fn keys() -> Vec<Key> {
    vec![
        key(
            "model.default",
            Shape::Text,
            "",
            "the model; `model: name` says the same",
        )
        .also_at(["model.model", "model.name"]),
        key(
            "model.provider",
            Shape::Text,
            "auto",
            "who serves it; `auto` looks at the credentials",
        )
        .also_at(["provider"]),
        key("model.base_url", Shape::Text, "", "another address for it").also_at([
            "model.api_base",
            "base_url",
            "api_base",
        ]),
        key(
            "model.api_key",
            Shape::Secret,
            "",
            "its credential; better kept in .env",
        ),
        key(
            "model.context_length",
            count(1, 100_000_000),
            "",
            "tokens it can see; asked of the provider if not written",
        ),
        key(
            "providers",
            Shape::Table {
                fields: PROVIDER,
                lone_values: LoneValues::Refused,
            },
            "",
            "settings of one provider",
        ),
        key(
            "custom_providers",
            Shape::Records {
                fields: PROVIDER,
                lone: None,
            },
            "",
            "providers of your own",
        ),
        key(
            "fallback_model",
            Shape::Records {
                fields: FALLBACK,
                lone: Some("model"),
            },
            "",
            "tried when the first fails",
        )
        .also_at(["fallback_providers"]),
        key(
            "auxiliary",
            Shape::Table {
                fields: AUXILIARY,
                lone_values: LoneValues::Unused,
            },
            "",
            "the model for a task of its own, such as `approval`",
        ),
    ]
}

const PROVIDER: &[Field] = &[
    Field {
        name: "name",
        shape: Shape::Text,
        required: false,
        about: "its name",
    },
    Field {
        name: "base_url",
        shape: Shape::Text,
        required: false,
        about: "its address",
    },
    Field {
        name: "api_key",
        shape: Shape::Secret,
        required: false,
        about: "its credential",
    },
    Field {
        name: "key_env",
        shape: Shape::Text,
        required: false,
        about: "the variable that holds its credential",
    },
    Field {
        name: "api_mode",
        shape: Shape::Text,
        required: false,
        about: "the protocol it speaks",
    },
    Field {
        name: "model",
        shape: Shape::Text,
        required: false,
        about: "its model",
    },
    Field {
        name: "request_timeout_seconds",
        shape: Shape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds for one request",
    },
    Field {
        name: "stale_timeout_seconds",
        shape: Shape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds of silence",
    },
    Field {
        name: "models",
        shape: Shape::Tree,
        required: false,
        about: "settings of single models",
    },
    Field {
        name: "extra_headers",
        shape: Shape::Pairs,
        required: false,
        about: "headers sent along",
    },
    Field {
        name: "extra_body",
        shape: Shape::Tree,
        required: false,
        about: "fields sent along",
    },
];

const FALLBACK: &[Field] = &[
    Field {
        name: "provider",
        shape: Shape::Text,
        required: false,
        about: "who serves it",
    },
    Field {
        name: "model",
        shape: Shape::Text,
        required: false,
        about: "the model",
    },
    Field {
        name: "base_url",
        shape: Shape::Text,
        required: false,
        about: "another address for it",
    },
    Field {
        name: "api_key",
        shape: Shape::Secret,
        required: false,
        about: "its credential",
    },
    Field {
        name: "key_env",
        shape: Shape::Text,
        required: false,
        about: "the variable that holds its credential",
    },
];

const AUXILIARY: &[Field] = &[
    Field {
        name: "provider",
        shape: Shape::Text,
        required: false,
        about: "who serves it",
    },
    Field {
        name: "model",
        shape: Shape::Text,
        required: false,
        about: "the model",
    },
    Field {
        name: "base_url",
        shape: Shape::Text,
        required: false,
        about: "another address for it",
    },
    Field {
        name: "api_key",
        shape: Shape::Secret,
        required: false,
        about: "its credential",
    },
    Field {
        name: "timeout",
        shape: Shape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds for one request",
    },
    Field {
        name: "extra_body",
        shape: Shape::Tree,
        required: false,
        about: "fields sent along",
    },
];
