//! Discord.

use super::{
    ALL_USERS, BOTS, FILE_ONLY, FLAG, HOME, LIST, PlatformKeys, SECRET, TEXT, USERS, mention,
    reactions,
};
use crate::schema::{ValueShape, count};
use crate::shape::{LoneValues, RecordField};

pub(super) const DISCORD: PlatformKeys = PlatformKeys {
    name: "discord",
    prefix: "DISCORD",
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
        ("base_url", "", TEXT, "", "another address for its API"),
        ("proxy", "", TEXT, "", "proxy for its API"),
        (
            "message_content",
            "",
            FLAG,
            "true",
            "ask for the text of messages that do not mention the bot",
        ),
        USERS,
        (
            "allowed_roles",
            "",
            LIST,
            "",
            "roles whose members may write",
        ),
        ALL_USERS,
        mention("true"),
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
        ("ignored_channels", "", LIST, "", "channels that are not"),
        (
            "no_thread_channels",
            "",
            LIST,
            "",
            "channels answered without a thread",
        ),
        ("auto_thread", "", FLAG, "true", "answer in a thread"),
        (
            "thread_require_mention",
            "",
            FLAG,
            "false",
            "inside it only when mentioned",
        ),
        ("allow_bots", "", BOTS, "none", "listen to bots"),
        reactions("true"),
        (
            "history_backfill",
            "",
            FLAG,
            "true",
            "read what was said before",
        ),
        (
            "history_backfill_limit",
            "",
            count(0, 1000),
            "50",
            "messages of it",
        ),
        (
            "missed_message_backfill.enabled",
            FILE_ONLY,
            FLAG,
            "true",
            "after an absence, read what was missed",
        ),
        (
            "missed_message_backfill.channels",
            FILE_ONLY,
            LIST,
            "",
            "in these channels",
        ),
        (
            "missed_message_backfill.window_seconds",
            FILE_ONLY,
            count(0, 30 * 24 * 3600),
            "21600",
            "what is older stays unanswered",
        ),
        (
            "missed_message_backfill.limit",
            FILE_ONLY,
            count(0, 10_000),
            "100",
            "messages to us that are read in one channel",
        ),
        (
            "missed_message_backfill.max_dispatches",
            FILE_ONLY,
            count(0, 10_000),
            "100",
            "messages answered after one absence",
        ),
        (
            "command_sync_policy",
            "",
            ValueShape::OneOf(&["safe", "bulk", "off"]),
            "safe",
            "how slash commands are announced",
        ),
        (
            "max_attachment_bytes",
            "",
            ValueShape::Size { unit: 1, least: 0 },
            "33554432",
            "largest attachment",
        ),
        (
            "allow_any_attachment",
            "",
            FLAG,
            "false",
            "take every kind of file",
        ),
        (
            "approval_mentions",
            "",
            LIST,
            "",
            "who is called for an approval",
        ),
        HOME,
    ],
};

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
];
