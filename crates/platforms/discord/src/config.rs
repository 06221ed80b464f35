//! What an operator decides about one bot.

use std::collections::BTreeSet;
use std::time::Duration;

use hermetic_types::{AccountId, ChatId, Platform, Secret, SharedClock};
use hermetic_upstream::UpstreamProxy;
use thiserror::Error;

/// Where Discord's own servers are.
const BASE_URL: &str = "https://discord.com/api/v10";

#[derive(Clone, Debug)]
pub struct DiscordConfig {
    pub account: AccountId,
    pub token: Secret,
    /// Of the HTTP API with its version; the gateway's address is asked for there.
    pub base_url: String,
    pub proxy: Option<UpstreamProxy>,
    pub hearing: DiscordHearing,
    /// Whether Discord is asked for the text of messages that are neither private nor mention us. It
    /// gives it only to bots for which that is switched on.
    pub message_content: bool,
    /// Whether people are let in by their roles, which histories do not tell.
    pub needs_roles: bool,
    pub backfill: BackfillLimits,
    /// `DISCORD_MAX_ATTACHMENT_BYTES`.
    pub max_attachment_bytes: u64,
    pub commands: Vec<SlashCommand>,
    pub command_sync: CommandSync,
    pub clock: SharedClock,
    pub timing: DiscordTiming,
}

/// What in a server is meant for us, and where it is answered. A list that holds `*` holds every channel;
/// a thread is listed by its own id or by its channel's.
#[derive(Clone, Debug)]
pub struct DiscordHearing {
    /// `DISCORD_REQUIRE_MENTION`: in channels only what names us or replies to us.
    pub require_mention: bool,
    /// `DISCORD_THREAD_REQUIRE_MENTION`: the same in threads in which we take part.
    pub thread_require_mention: bool,
    /// `DISCORD_FREE_RESPONSE_CHANNELS`: no mention is needed, and no thread is made.
    pub free_response_channels: BTreeSet<ChatId>,
    /// `DISCORD_ALLOWED_CHANNELS`: if there are any, only these.
    pub allowed_channels: BTreeSet<ChatId>,
    /// `DISCORD_IGNORED_CHANNELS`.
    pub ignored_channels: BTreeSet<ChatId>,
    /// `DISCORD_AUTO_THREAD`: what is said in a channel is answered in a thread of its own.
    pub auto_thread: bool,
    /// `DISCORD_NO_THREAD_CHANNELS`: but not here.
    pub no_thread_channels: BTreeSet<ChatId>,
    /// `DISCORD_ALLOW_BOTS`; whether such a bot may speak is up to access.
    pub bots: bool,
}

/// How much of what was said while we were away is read from the histories:
/// `missed_message_backfill`.
#[derive(Clone, Copy, Debug)]
pub struct BackfillLimits {
    pub enabled: bool,
    /// What is older stays unanswered.
    pub window: Duration,
    /// Messages that are read in one channel.
    pub limit: usize,
    /// Messages that are answered after one gap.
    pub max_dispatches: usize,
}

/// A command that people find behind a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    pub argument: Option<CommandArgument>,
}

/// What may be written behind a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandArgument {
    pub name: String,
    pub description: String,
    pub required: bool,
    /// Words that are offered while it is typed.
    pub words: Vec<String>,
}

/// `DISCORD_COMMAND_SYNC_POLICY`: how Discord learns our commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSync {
    /// What differs is written; what others registered for this bot stays.
    #[default]
    Safe,
    /// Ours replace all there are.
    Bulk,
    Off,
}

#[derive(Clone, Debug)]
pub struct DiscordTiming {
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when Discord asks for one.
    pub throttle: Duration,
    /// From the connection to the gateway's first word.
    pub hello: Duration,
    /// First and longest wait between two new sessions: their number is limited.
    pub identify: (Duration, Duration),
    /// How long a press may stay without any answer; Discord takes it back after three seconds.
    pub acknowledge: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum DiscordConfigError {
    #[error("the bot token is not one: expected letters, digits, '.', '_' and '-'")]
    Token,
    #[error("the API address is not an http address")]
    BaseUrl,
    #[error("the HTTP client cannot be built")]
    Client,
}

impl DiscordConfig {
    pub fn new(token: Secret, clock: SharedClock) -> Self {
        Self {
            account: Platform::Discord.into(),
            token,
            base_url: BASE_URL.to_owned(),
            proxy: None,
            hearing: DiscordHearing::default(),
            message_content: true,
            needs_roles: false,
            backfill: BackfillLimits::default(),
            max_attachment_bytes: 32 << 20,
            commands: Vec::new(),
            command_sync: CommandSync::default(),
            clock,
            timing: DiscordTiming::default(),
        }
    }
}

impl Default for DiscordHearing {
    fn default() -> Self {
        Self {
            require_mention: true,
            thread_require_mention: false,
            free_response_channels: BTreeSet::new(),
            allowed_channels: BTreeSet::new(),
            ignored_channels: BTreeSet::new(),
            auto_thread: true,
            no_thread_channels: BTreeSet::new(),
            bots: false,
        }
    }
}

impl Default for BackfillLimits {
    fn default() -> Self {
        Self {
            enabled: true,
            window: Duration::from_secs(6 * 3600),
            limit: 100,
            max_dispatches: 100,
        }
    }
}

impl Default for DiscordTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            hello: Duration::from_secs(20),
            identify: (Duration::from_secs(5), Duration::from_secs(600)),
            acknowledge: Duration::from_secs(2),
        }
    }
}
