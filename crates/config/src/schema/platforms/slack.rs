//! Slack.

use crate::shape::{LoneValues, RecordField, ValueShape};

use super::{
    ALL_USERS, BOTS, FILE_ONLY, FLAG, HOME, LIST, PATTERNS, PORT, PlatformKeys, SECRET, TEXT,
    USERS, mention, reactions,
};

pub(super) const SLACK: PlatformKeys = PlatformKeys {
    name: "slack",
    prefix: "SLACK",
    own: &[
        ("token", "BOT_TOKEN", SECRET, "", "bot token (xoxb)"),
        ("app_token", "", SECRET, "", "app token (xapp)"),
        (
            "accounts",
            FILE_ONLY,
            ValueShape::Table {
                fields: ACCOUNT,
                lone_values: LoneValues::Refused,
            },
            "",
            "more workspaces, each by a name and with an app of its own",
        ),
        USERS,
        ALL_USERS,
        ("proxy", "", TEXT, "", "proxy for its API"),
        ("base_url", "", TEXT, "", "another address for its API"),
        (
            "events_url",
            "",
            TEXT,
            "",
            "public address for its events; Socket Mode if not written",
        ),
        (
            "signing_secret",
            "",
            SECRET,
            "",
            "tells its events from forged ones; needed with events_url",
        ),
        (
            "events_host",
            "",
            TEXT,
            "127.0.0.1",
            "address it listens on, behind something with a certificate",
        ),
        ("events_port", "", PORT, "3000", "port it listens on"),
        mention("true"),
        ("strict_mention", "", FLAG, "false", "also inside threads"),
        (
            "free_response_channels",
            "",
            LIST,
            "",
            "channels that need no mention",
        ),
        (
            "allowed_channels",
            "",
            LIST,
            "",
            "the only channels that are listened to",
        ),
        PATTERNS,
        ("allow_bots", "", BOTS, "none", "listen to bots"),
        reactions("true"),
        HOME,
    ],
};

/// What may differ from one workspace to the next.
const ACCOUNT: &[RecordField] = &[
    RecordField {
        name: "token",
        shape: SECRET,
        required: true,
        about: "bot token (xoxb), best as ${A_VARIABLE_OF_DOTENV}",
    },
    RecordField {
        name: "app_token",
        shape: SECRET,
        required: false,
        about: "app token (xapp) of an app of its own",
    },
    RecordField {
        name: "events_url",
        shape: TEXT,
        required: false,
        about: "public address for its events; Socket Mode if not written",
    },
    RecordField {
        name: "signing_secret",
        shape: SECRET,
        required: false,
        about: "needed with events_url",
    },
    RecordField {
        name: "events_host",
        shape: TEXT,
        required: false,
        about: "address it listens on; two may share one",
    },
    RecordField {
        name: "events_port",
        shape: PORT,
        required: false,
        about: "port it listens on; two may share one",
    },
    RecordField {
        name: "base_url",
        shape: TEXT,
        required: false,
        about: "another address for its API",
    },
    RecordField {
        name: "proxy",
        shape: TEXT,
        required: false,
        about: "proxy for its API",
    },
];
