//! The chat platforms.
//!
//! A platform's keys may stand below `platforms.<name>`, below `<name>` at the top, or below either
//! of these inside `gateway:`; and in an `extra:` inside. A variable overrules all of them.

mod discord;
mod listening;
mod matrix;
mod signal;
mod slack;
mod telegram;
mod whatsapp;

use super::{BACKENDS, COMMA_TEXTS, SchemaKey, ValueShape, count, key};

/// One platform and what only it has.
pub(crate) struct PlatformKeys {
    pub(crate) name: &'static str,
    /// What its variables start with.
    prefix: &'static str,
    own: &'static [OwnKey],
}

/// Key, the variable's ending (empty: the key in capitals; [`FILE_ONLY`]: none), shape, default, meaning.
type OwnKey = (
    &'static str,
    &'static str,
    ValueShape,
    &'static str,
    &'static str,
);

/// The ending of a variable that does not exist.
const FILE_ONLY: &str = "-";

const FLAG: ValueShape = ValueShape::Flag;
const TEXT: ValueShape = ValueShape::Text;
const SECRET: ValueShape = ValueShape::Secret;
const LIST: ValueShape = COMMA_TEXTS;
const PORT: ValueShape = count(0, 65_535);
const BOTS: ValueShape = ValueShape::OneOf(&["none", "mentions", "all", "true", "false"]);
const POLICY: ValueShape = ValueShape::OneOf(&["pairing", "allowlist", "open", "disabled"]);

const USERS: OwnKey = (
    "allowed_users",
    "",
    LIST,
    "",
    "users who may write; `*` for everybody",
);
const ALL_USERS: OwnKey = ("allow_all_users", "", FLAG, "false", "let everybody write");
const GROUP_USERS: OwnKey = (
    "group_allowed_users",
    "",
    LIST,
    "",
    "users who may write in groups",
);
const PATTERNS: OwnKey = (
    "mention_patterns",
    "",
    LIST,
    "",
    "words that count as a mention",
);
const HOME: OwnKey = (
    "home_channel",
    "",
    ValueShape::Tree,
    "",
    "where announcements go: an id, or a map with chat_id",
);

const fn mention(fallback: &'static str) -> OwnKey {
    (
        "require_mention",
        "",
        FLAG,
        fallback,
        "answer in groups only when mentioned",
    )
}

const fn reactions(fallback: &'static str) -> OwnKey {
    (
        "reactions",
        "",
        FLAG,
        fallback,
        "show progress as reactions",
    )
}

pub(crate) const PLATFORMS: &[PlatformKeys] = &[
    telegram::TELEGRAM,
    discord::DISCORD,
    slack::SLACK,
    whatsapp::WHATSAPP,
    whatsapp::WHATSAPP_CLOUD,
    signal::SIGNAL,
    matrix::MATRIX,
    listening::WEBHOOK,
    listening::API_SERVER,
];

/// What every platform has.
const EVERY: &[OwnKey] = &[
    (
        "enabled",
        "",
        FLAG,
        "",
        "use it; if not written, whether it has its credentials",
    ),
    ("api_key", "", SECRET, "", "another credential"),
    (
        "agent",
        FILE_ONLY,
        TEXT,
        "",
        "which agent answers there, instead of agent.acp; `hermetic` for our own",
    ),
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
        ValueShape::OneOf(&["pair", "ignore"]),
        "",
        "what a stranger gets here",
    ),
    (
        "reply_to_mode",
        "",
        ValueShape::OneOf(&["off", "first", "all"]),
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
        ValueShape::Tree,
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

pub(super) fn keys() -> Vec<SchemaKey> {
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

fn declare(platform: &PlatformKeys, own: &OwnKey, with_variable: bool) -> SchemaKey {
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
    if !with_variable || *ending == FILE_ONLY {
        return declared;
    }
    let ending = if ending.is_empty() {
        name.to_ascii_uppercase()
    } else {
        (*ending).to_owned()
    };
    declared.overruled_by(format!("{}_{ending}", platform.prefix))
}
