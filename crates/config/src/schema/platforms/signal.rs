//! Signal.

use crate::shape::{LoneValues, RecordField, ValueShape};

use super::{
    ALL_USERS, FILE_ONLY, FLAG, HOME, LIST, PlatformKeys, TEXT, USERS, mention, reactions,
};

pub(super) const SIGNAL: PlatformKeys = PlatformKeys {
    name: "signal",
    prefix: "SIGNAL",
    own: &[
        (
            "http_url",
            "",
            TEXT,
            "",
            "address of signal-cli's daemon: http://…, tcp://… or unix:///…",
        ),
        ("account", "", TEXT, "", "the number it runs as"),
        (
            "accounts",
            FILE_ONLY,
            ValueShape::Table {
                fields: ACCOUNT,
                lone_values: LoneValues::Refused,
            },
            "",
            "more numbers, each by a name; what an account does not say is as for the first",
        ),
        USERS,
        (
            "group_allowed_users",
            "",
            LIST,
            "",
            "groups that are listened to, `*` for all; and users who may write in groups",
        ),
        ALL_USERS,
        (
            "ignore_stories",
            "",
            FLAG,
            "true",
            "do not take stories for messages",
        ),
        mention("false"),
        reactions("true"),
        HOME,
    ],
};

const ACCOUNT: &[RecordField] = &[
    RecordField {
        name: "account",
        shape: TEXT,
        required: true,
        about: "the number it runs as",
    },
    RecordField {
        name: "http_url",
        shape: TEXT,
        required: false,
        about: "address of its daemon; one daemon may run as several",
    },
];
