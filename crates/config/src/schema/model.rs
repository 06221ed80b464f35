//! `model:` and its relatives.

use super::{SchemaKey, ValueShape, count, key};
use crate::providers::ApiMode;
use crate::shape::{LoneValues, RecordField};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "model.default",
            ValueShape::Text,
            "",
            "the model; `model: name` says the same",
        )
        .also_at(["model.model", "model.name"]),
        key(
            "model.provider",
            ValueShape::Text,
            "auto",
            "who serves it; `auto` looks at the credentials",
        )
        .also_at(["provider"]),
        key(
            "model.base_url",
            ValueShape::Text,
            "",
            "another address for it",
        )
        .also_at(["model.api_base", "base_url", "api_base"]),
        key(
            "model.api_key",
            ValueShape::Secret,
            "",
            "its credential; better kept in .env",
        ),
        key(
            "model.context_length",
            count(1, 100_000_000),
            "",
            "tokens it can see; from our table of models if not written",
        ),
        key(
            "model.api_mode",
            ValueShape::OneOf(ApiMode::NAMES),
            "",
            "the wire it is spoken to in; that of its provider if not written",
        )
        .also_at(["api_mode"]),
        key(
            "model.max_tokens",
            count(1, 100_000_000),
            "",
            "tokens of one answer; the provider's own bound if not written",
        ),
        key(
            "model.streaming",
            ValueShape::Flag,
            "true",
            "read answers as they are written",
        ),
        key(
            "agent.reasoning_effort",
            ValueShape::OneOf(&["", "none", "minimal", "low", "medium", "high", "xhigh"]),
            "",
            "how much the model thinks before it speaks; the provider's own way if not written",
        ),
        key(
            "providers",
            ValueShape::Table {
                fields: PROVIDER,
                lone_values: LoneValues::Refused,
            },
            "",
            "settings of one provider",
        ),
        key(
            "custom_providers",
            ValueShape::Records {
                fields: PROVIDER,
                lone: None,
            },
            "",
            "providers of your own",
        ),
        key(
            "fallback_model",
            ValueShape::Records {
                fields: FALLBACK,
                lone: Some("model"),
            },
            "",
            "tried when the first fails",
        )
        .also_at(["fallback_providers"]),
        key(
            "auxiliary",
            ValueShape::Table {
                fields: AUXILIARY,
                lone_values: LoneValues::Unused,
            },
            "",
            "the model for a task of its own: `approval`, `compression` or `vision`",
        ),
    ]
}

const PROVIDER: &[RecordField] = &[
    RecordField {
        name: "name",
        shape: ValueShape::Text,
        required: false,
        about: "its name",
    },
    RecordField {
        name: "base_url",
        shape: ValueShape::Text,
        required: false,
        about: "its address",
    },
    RecordField {
        name: "api_key",
        shape: ValueShape::Secret,
        required: false,
        about: "its credential",
    },
    RecordField {
        name: "key_env",
        shape: ValueShape::Text,
        required: false,
        about: "the variable that holds its credential",
    },
    RecordField {
        name: "api_mode",
        shape: ValueShape::OneOf(ApiMode::NAMES),
        required: false,
        about: "the protocol it speaks",
    },
    RecordField {
        name: "model",
        shape: ValueShape::Text,
        required: false,
        about: "its model",
    },
    RecordField {
        name: "request_timeout_seconds",
        shape: ValueShape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds for one request",
    },
    RecordField {
        name: "stale_timeout_seconds",
        shape: ValueShape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds of silence",
    },
    RecordField {
        name: "models",
        shape: ValueShape::Tree,
        required: false,
        about: "settings of single models",
    },
    RecordField {
        name: "api_version",
        shape: ValueShape::Text,
        required: false,
        about: "Azure's `api-version`",
    },
    RecordField {
        name: "extra_headers",
        shape: ValueShape::Pairs,
        required: false,
        about: "headers sent along",
    },
    RecordField {
        name: "extra_body",
        shape: ValueShape::Tree,
        required: false,
        about: "fields sent along",
    },
];

const FALLBACK: &[RecordField] = &[
    RecordField {
        name: "provider",
        shape: ValueShape::Text,
        required: false,
        about: "who serves it",
    },
    RecordField {
        name: "model",
        shape: ValueShape::Text,
        required: false,
        about: "the model",
    },
    RecordField {
        name: "api_mode",
        shape: ValueShape::OneOf(ApiMode::NAMES),
        required: false,
        about: "the wire it is spoken to in",
    },
    RecordField {
        name: "base_url",
        shape: ValueShape::Text,
        required: false,
        about: "another address for it",
    },
    RecordField {
        name: "api_key",
        shape: ValueShape::Secret,
        required: false,
        about: "its credential",
    },
    RecordField {
        name: "key_env",
        shape: ValueShape::Text,
        required: false,
        about: "the variable that holds its credential",
    },
];

const AUXILIARY: &[RecordField] = &[
    RecordField {
        name: "provider",
        shape: ValueShape::Text,
        required: false,
        about: "who serves it",
    },
    RecordField {
        name: "model",
        shape: ValueShape::Text,
        required: false,
        about: "the model",
    },
    RecordField {
        name: "api_mode",
        shape: ValueShape::OneOf(ApiMode::NAMES),
        required: false,
        about: "the wire it is spoken to in",
    },
    RecordField {
        name: "base_url",
        shape: ValueShape::Text,
        required: false,
        about: "another address for it",
    },
    RecordField {
        name: "api_key",
        shape: ValueShape::Secret,
        required: false,
        about: "its credential",
    },
    RecordField {
        name: "key_env",
        shape: ValueShape::Text,
        required: false,
        about: "the variable that holds its credential",
    },
    RecordField {
        name: "timeout",
        shape: ValueShape::Number {
            least: 0.0,
            most: 86_400.0,
        },
        required: false,
        about: "seconds for one request",
    },
    RecordField {
        name: "extra_body",
        shape: ValueShape::Tree,
        required: false,
        about: "fields sent along",
    },
];
