//! Telegram.

use crate::shape::{LoneValues, RecordField, ValueShape};

use super::{
    ALL_USERS, BOTS, FILE_ONLY, FLAG, GROUP_USERS, HOME, LIST, PATTERNS, PORT, PlatformKeys,
    SECRET, TEXT, USERS, mention, reactions,
};

pub(super) const TELEGRAM: PlatformKeys = PlatformKeys {
    name: "telegram",
    prefix: "TELEGRAM",
    own: &[
        ("token", "BOT_TOKEN", SECRET, "", "bot token"),
        (
            "accounts",
            FILE_ONLY,
            ValueShape::Table {
                fields: ACCOUNT,
                lone_values: LoneValues::Refused,
            },
            "",
            "more bots, each by a name; what an account does not say is as for the first",
        ),
        USERS,
        GROUP_USERS,
        (
            "group_allowed_chats",
            "",
            LIST,
            "",
            "groups in which everybody may write",
        ),
        ALL_USERS,
        ("proxy", "", TEXT, "", "proxy for its API"),
        ("base_url", "", TEXT, "", "another address for its API"),
        (
            "webhook_url",
            "",
            TEXT,
            "",
            "public address; long polling if not written",
        ),
        (
            "webhook_secret",
            "",
            SECRET,
            "",
            "shared with the platform; needed with webhook_url",
        ),
        (
            "webhook_host",
            "",
            TEXT,
            "127.0.0.1",
            "address it listens on, behind something with a certificate",
        ),
        ("webhook_port", "", PORT, "8443", "port it listens on"),
        mention("false"),
        (
            "allowed_chats",
            "",
            LIST,
            "",
            "the only chats that are listened to",
        ),
        ("allowed_topics", "", LIST, "", "the only topics"),
        ("ignored_threads", "", LIST, "", "topics that are not"),
        (
            "free_response_chats",
            "",
            LIST,
            "",
            "chats that need no mention",
        ),
        (
            "free_response_topics",
            "",
            LIST,
            "",
            "topics that need none",
        ),
        PATTERNS,
        (
            "guest_mode",
            "",
            FLAG,
            "false",
            "answer mentions in chats that are not listed",
        ),
        (
            "exclusive_bot_mentions",
            "",
            FLAG,
            "true",
            "stay silent when another bot is mentioned",
        ),
        ("allow_bots", "", BOTS, "none", "listen to bots"),
        reactions("false"),
        (
            "fallback_ips",
            "",
            LIST,
            "",
            "addresses to try when its name does not resolve",
        ),
        HOME,
        ("home_channel_name", "", TEXT, "", "its name"),
        ("home_channel_thread_id", "", TEXT, "", "its topic"),
    ],
};

/// What may differ from one bot to the next.
const ACCOUNT: &[RecordField] = &[
    RecordField {
        name: "token",
        shape: SECRET,
        required: true,
        about: "bot token, best as ${A_VARIABLE_OF_DOTENV}",
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
    RecordField {
        name: "webhook_url",
        shape: TEXT,
        required: false,
        about: "public address; long polling if not written",
    },
    RecordField {
        name: "webhook_secret",
        shape: SECRET,
        required: false,
        about: "shared with the platform; needed with webhook_url",
    },
    RecordField {
        name: "webhook_host",
        shape: TEXT,
        required: false,
        about: "address it listens on; two bots may share one",
    },
    RecordField {
        name: "webhook_port",
        shape: PORT,
        required: false,
        about: "port it listens on; two bots may share one",
    },
];
