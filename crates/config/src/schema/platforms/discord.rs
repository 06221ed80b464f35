//! Discord.

use super::{ALL_USERS, BOTS, FLAG, HOME, LIST, Platform, SECRET, TEXT, USERS, mention, reactions};
use crate::schema::{Shape, count};

pub(super) const DISCORD: Platform = Platform {
    name: "discord",
    prefix: "DISCORD",
    own: &[
        ("token", "BOT_TOKEN", SECRET, "", "bot token"),
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
            "command_sync_policy",
            "",
            TEXT,
            "safe",
            "how slash commands are announced",
        ),
        (
            "max_attachment_bytes",
            "",
            Shape::Size { unit: 1, least: 0 },
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
