//! The chat platforms.
//!
//! A platform's keys may stand below `platforms.<name>`, below `<name>` at the top, or below either
//! of these inside `gateway:`; and in an `extra:` inside. A variable overrules all of them.

use super::{BACKENDS, COMMA_TEXTS, Key, Shape, count, key};

/// One platform and what only it has.
pub(crate) struct Platform {
    pub(crate) name: &'static str,
    /// What its variables start with.
    prefix: &'static str,
    own: &'static [Own],
}

/// Key, the variable's ending (empty: the key in capitals), shape, default, meaning.
type Own = (
    &'static str,
    &'static str,
    Shape,
    &'static str,
    &'static str,
);

const FLAG: Shape = Shape::Flag;
const TEXT: Shape = Shape::Text;
const SECRET: Shape = Shape::Secret;
const LIST: Shape = COMMA_TEXTS;
const PORT: Shape = count(0, 65_535);
const BOTS: Shape = Shape::OneOf(&["none", "mentions", "all", "true", "false"]);
const POLICY: Shape = Shape::OneOf(&["pairing", "allowlist", "open", "disabled"]);

const USERS: Own = (
    "allowed_users",
    "",
    LIST,
    "",
    "users who may write; `*` for everybody",
);
const ALL_USERS: Own = ("allow_all_users", "", FLAG, "false", "let everybody write");
const GROUP_USERS: Own = (
    "group_allowed_users",
    "",
    LIST,
    "",
    "users who may write in groups",
);
const PATTERNS: Own = (
    "mention_patterns",
    "",
    LIST,
    "",
    "words that count as a mention",
);
const HOME: Own = (
    "home_channel",
    "",
    Shape::Tree,
    "",
    "where announcements go: an id, or a map with chat_id",
);

const fn mention(fallback: &'static str) -> Own {
    (
        "require_mention",
        "",
        FLAG,
        fallback,
        "answer in groups only when mentioned",
    )
}

const fn reactions(fallback: &'static str) -> Own {
    (
        "reactions",
        "",
        FLAG,
        fallback,
        "show progress as reactions",
    )
}

pub(crate) const PLATFORMS: &[Platform] = &[
    Platform {
        name: "telegram",
        prefix: "TELEGRAM",
        own: &[
            ("token", "BOT_TOKEN", SECRET, "", "bot token"),
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
    },
    Platform {
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
    },
    Platform {
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
    },
    Platform {
        name: "whatsapp",
        prefix: "WHATSAPP",
        own: &[
            USERS,
            GROUP_USERS,
            ALL_USERS,
            ("dm_policy", "", POLICY, "pairing", "who may write directly"),
            (
                "group_policy",
                "",
                POLICY,
                "pairing",
                "who may write in groups",
            ),
            (
                "mode",
                "",
                Shape::OneOf(&["self-chat", "bot"]),
                "self-chat",
                "whose account it is",
            ),
            ("reply_prefix", "", TEXT, "", "put before every answer"),
            mention("false"),
            PATTERNS,
            (
                "free_response_chats",
                "",
                LIST,
                "",
                "chats that need no mention",
            ),
            ("bridge_port", "", PORT, "3000", "port of the bridge"),
            ("bridge_script", "", TEXT, "", "program of the bridge"),
            (
                "session_path",
                "",
                TEXT,
                "",
                "where the bridge keeps its login",
            ),
            HOME,
        ],
    },
    Platform {
        name: "whatsapp_cloud",
        prefix: "WHATSAPP_CLOUD",
        own: &[
            ("phone_number_id", "", TEXT, "", "the number's id"),
            ("access_token", "", SECRET, "", "access token"),
            ("app_id", "", TEXT, "", "the app's id"),
            (
                "app_secret",
                "",
                SECRET,
                "",
                "proves that a message comes from the platform",
            ),
            ("waba_id", "", TEXT, "", "the business account's id"),
            (
                "verify_token",
                "",
                SECRET,
                "",
                "asked for when the webhook is registered",
            ),
            USERS,
            ALL_USERS,
            ("webhook_host", "", TEXT, "0.0.0.0", "address it listens on"),
            ("webhook_port", "", PORT, "8090", "port it listens on"),
            (
                "webhook_path",
                "",
                TEXT,
                "/whatsapp/webhook",
                "path it listens on",
            ),
            ("api_version", "", TEXT, "v20.0", "version of its API"),
            ("base_url", "", TEXT, "", "another address for its API"),
            HOME,
        ],
    },
    Platform {
        name: "signal",
        prefix: "SIGNAL",
        own: &[
            ("http_url", "", TEXT, "", "address of signal-cli's daemon"),
            ("account", "", TEXT, "", "the number it runs as"),
            USERS,
            GROUP_USERS,
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
    },
    Platform {
        name: "webhook",
        prefix: "WEBHOOK",
        own: &[
            ("host", "", TEXT, "127.0.0.1", "address it listens on"),
            ("port", "", PORT, "8644", "port it listens on"),
            ("secret", "", SECRET, "", "shared with the sender"),
        ],
    },
    Platform {
        name: "api_server",
        prefix: "API_SERVER",
        own: &[
            ("host", "", TEXT, "127.0.0.1", "address it listens on"),
            ("port", "", PORT, "8642", "port it listens on"),
            ("key", "", SECRET, "", "needed to use it"),
        ],
    },
];

/// What every platform has.
const EVERY: &[Own] = &[
    (
        "enabled",
        "",
        FLAG,
        "",
        "use it; if not written, whether it has its credentials",
    ),
    ("api_key", "", SECRET, "", "another credential"),
    (
        "terminal_backend",
        "",
        BACKENDS,
        "",
        "where its commands run, instead of gateway.terminal_backend",
    ),
    (
        "unauthorized_dm_behavior",
        "",
        Shape::OneOf(&["pair", "ignore"]),
        "",
        "what a stranger gets here",
    ),
    (
        "reply_to_mode",
        "",
        Shape::OneOf(&["off", "first", "all"]),
        "first",
        "which parts of an answer quote the question",
    ),
    (
        "gateway_restart_notification",
        "",
        FLAG,
        "true",
        "say when the gateway is back",
    ),
    (
        "typing_indicator",
        "",
        FLAG,
        "true",
        "show that an answer is coming",
    ),
    ("typing_status_text", "", TEXT, "", "in these words"),
    (
        "channel_overrides",
        "",
        Shape::Tree,
        "",
        "model, provider and prompt of single channels",
    ),
    (
        "allow_admin_from",
        "",
        LIST,
        "",
        "users who may use every slash command",
    ),
    (
        "user_allowed_commands",
        "",
        LIST,
        "",
        "slash commands of the others",
    ),
    ("group_allow_admin_from", "", LIST, "", "the same in groups"),
    (
        "group_user_allowed_commands",
        "",
        LIST,
        "",
        "the same in groups",
    ),
];

/// A variable may choose these; the rest of [`EVERY`] is for files only.
const EVERY_VARIABLE: [&str; 2] = ["enabled", "reply_to_mode"];

pub(super) fn keys() -> Vec<Key> {
    PLATFORMS
        .iter()
        .flat_map(|platform| {
            let own = platform
                .own
                .iter()
                .map(move |own| declare(platform, own, true));
            let every = EVERY
                .iter()
                .map(move |own| declare(platform, own, EVERY_VARIABLE.contains(&own.0)));
            own.chain(every)
        })
        .collect()
}

fn declare(platform: &Platform, own: &Own, with_variable: bool) -> Key {
    let (name, ending, shape, fallback, about) = own;
    let place = platform.name;
    let declared = key(
        format!("platforms.{place}.{name}"),
        shape.clone(),
        fallback,
        about,
    )
    .also_at([
        format!("platforms.{place}.extra.{name}"),
        format!("{place}.{name}"),
        format!("{place}.extra.{name}"),
        format!("gateway.platforms.{place}.{name}"),
        format!("gateway.platforms.{place}.extra.{name}"),
        format!("gateway.{place}.{name}"),
    ]);
    if !with_variable {
        return declared;
    }
    let ending = if ending.is_empty() {
        name.to_ascii_uppercase()
    } else {
        (*ending).to_owned()
    };
    declared.overruled_by(format!("{}_{ending}", platform.prefix))
}
