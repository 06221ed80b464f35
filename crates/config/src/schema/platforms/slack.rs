//! Slack.

use super::{
    ALL_USERS, BOTS, FLAG, HOME, LIST, PATTERNS, Platform, SECRET, USERS, mention, reactions,
};

pub(super) const SLACK: Platform = Platform {
    name: "slack",
    prefix: "SLACK",
    own: &[
        ("token", "BOT_TOKEN", SECRET, "", "bot token (xoxb)"),
        ("app_token", "", SECRET, "", "app token (xapp)"),
        USERS,
        ALL_USERS,
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
