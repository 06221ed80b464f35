//! The chat platforms.

use std::collections::BTreeMap;

use hermetic_types::{BackendKind, Secret};

use super::pick::{Pick, words};
use crate::problem::Problem;

/// Every platform; `enabled` says whether it is used.
#[derive(Clone, Debug)]
pub struct Platforms {
    pub telegram: Telegram,
    pub discord: Discord,
    pub slack: Slack,
    pub whatsapp: WhatsApp,
    pub whatsapp_cloud: WhatsAppCloud,
    pub signal: Signal,
    pub webhook: Webhook,
    pub api_server: Webhook,
    /// On every platform.
    pub allowed_users: Vec<String>,
    pub allow_all_users: bool,
}

/// What every platform has.
#[derive(Clone, Debug)]
pub struct Platform {
    pub name: &'static str,
    pub enabled: bool,
    /// Instead of the gateway's.
    pub terminal_backend: Option<BackendKind>,
    pub allowed_users: Vec<String>,
    pub allow_all_users: bool,
    pub stranger: Stranger,
    pub reply_to_mode: String,
    pub typing_indicator: bool,
    pub restart_notification: bool,
    pub admins: Vec<String>,
    pub user_commands: Vec<String>,
    pub group_admins: Vec<String>,
    pub group_user_commands: Vec<String>,
    pub home_channel: Option<String>,
    /// By channel id, as written.
    pub channel_overrides: BTreeMap<String, serde_json::Value>,
}

/// What somebody gets who is not allowed to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// A code that the operator can approve.
    Pair,
    Ignore,
}

words!(Stranger { "pair" => Pair, "ignore" => Ignore });

#[derive(Clone, Debug)]
pub struct Telegram {
    pub platform: Platform,
    pub token: Option<Secret>,
    pub base_url: Option<String>,
    pub proxy: Option<String>,
    pub webhook_url: Option<String>,
    pub webhook_secret: Option<Secret>,
    pub webhook_port: u16,
    pub group_allowed_users: Vec<String>,
    pub group_allowed_chats: Vec<String>,
    pub allowed_chats: Vec<String>,
    pub allowed_topics: Vec<String>,
    pub ignored_threads: Vec<String>,
    pub require_mention: bool,
    pub free_response_chats: Vec<String>,
    pub free_response_topics: Vec<String>,
    pub mention_patterns: Vec<String>,
    pub guest_mode: bool,
    pub exclusive_bot_mentions: bool,
    pub allow_bots: String,
    pub reactions: bool,
}

#[derive(Clone, Debug)]
pub struct Discord {
    pub platform: Platform,
    pub token: Option<Secret>,
    pub allowed_roles: Vec<String>,
    pub require_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub ignored_channels: Vec<String>,
    pub no_thread_channels: Vec<String>,
    pub auto_thread: bool,
    pub thread_require_mention: bool,
    pub allow_bots: String,
    pub reactions: bool,
    pub max_attachment_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Slack {
    pub platform: Platform,
    pub bot_token: Option<Secret>,
    pub app_token: Option<Secret>,
    pub require_mention: bool,
    pub strict_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub mention_patterns: Vec<String>,
    pub allow_bots: String,
    pub reactions: bool,
}

/// By a bridge on this machine.
#[derive(Clone, Debug)]
pub struct WhatsApp {
    pub platform: Platform,
    pub group_allowed_users: Vec<String>,
    pub dm_policy: String,
    pub group_policy: String,
    pub mode: String,
    pub reply_prefix: Option<String>,
    pub require_mention: bool,
    pub bridge_port: u16,
}

#[derive(Clone, Debug)]
pub struct WhatsAppCloud {
    pub platform: Platform,
    pub phone_number_id: Option<String>,
    pub access_token: Option<Secret>,
    pub app_secret: Option<Secret>,
    pub verify_token: Option<Secret>,
    pub webhook_host: String,
    pub webhook_port: u16,
    pub webhook_path: String,
    pub api_version: String,
    pub base_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Signal {
    pub platform: Platform,
    pub http_url: Option<String>,
    pub account: Option<String>,
    pub group_allowed_users: Vec<String>,
    pub ignore_stories: bool,
    pub require_mention: bool,
    pub reactions: bool,
}

/// Something that listens and needs a secret.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub platform: Platform,
    pub host: String,
    pub port: u16,
    pub secret: Option<Secret>,
}

impl Platforms {
    pub fn all(&self) -> [&Platform; 8] {
        [
            &self.telegram.platform,
            &self.discord.platform,
            &self.slack.platform,
            &self.whatsapp.platform,
            &self.whatsapp_cloud.platform,
            &self.signal.platform,
            &self.webhook.platform,
            &self.api_server.platform,
        ]
    }

    pub fn enabled(&self) -> impl Iterator<Item = &Platform> {
        self.all().into_iter().filter(|platform| platform.enabled)
    }

    pub(super) fn build(pick: &Pick<'_>, problems: &mut Vec<Problem>) -> Self {
        Self {
            telegram: telegram(&Section::new(pick, "telegram"), problems),
            discord: discord(&Section::new(pick, "discord"), problems),
            slack: slack(&Section::new(pick, "slack"), problems),
            whatsapp: whatsapp(&Section::new(pick, "whatsapp"), problems),
            whatsapp_cloud: whatsapp_cloud(&Section::new(pick, "whatsapp_cloud"), problems),
            signal: signal(&Section::new(pick, "signal"), problems),
            webhook: listener(&Section::new(pick, "webhook"), "secret", problems),
            api_server: listener(&Section::new(pick, "api_server"), "key", problems),
            allowed_users: pick.texts("GATEWAY_ALLOWED_USERS"),
            allow_all_users: pick.flag("GATEWAY_ALLOW_ALL_USERS"),
        }
    }
}

fn telegram(at: &Section<'_>, problems: &mut Vec<Problem>) -> Telegram {
    let token = at.secret("token");
    let platform = at.platform(&[("token", token.is_some())], problems);
    let webhook_url = at.maybe_text("webhook_url");
    let webhook_secret = at.secret("webhook_secret");
    if webhook_url.is_some() && webhook_secret.is_none() {
        problems.push(
            at.wrong(
                "webhook_url",
                "a webhook without a secret takes messages from anybody",
            )
            .help("set TELEGRAM_WEBHOOK_SECRET, or leave the webhook out to poll"),
        );
    }
    Telegram {
        platform,
        token,
        base_url: at.maybe_text("base_url"),
        proxy: at.maybe_text("proxy"),
        webhook_url,
        webhook_secret,
        webhook_port: at.port("webhook_port"),
        group_allowed_users: at.texts("group_allowed_users"),
        group_allowed_chats: at.texts("group_allowed_chats"),
        allowed_chats: at.texts("allowed_chats"),
        allowed_topics: at.texts("allowed_topics"),
        ignored_threads: at.texts("ignored_threads"),
        require_mention: at.flag("require_mention"),
        free_response_chats: at.texts("free_response_chats"),
        free_response_topics: at.texts("free_response_topics"),
        mention_patterns: at.texts("mention_patterns"),
        guest_mode: at.flag("guest_mode"),
        exclusive_bot_mentions: at.flag("exclusive_bot_mentions"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
    }
}

fn discord(at: &Section<'_>, problems: &mut Vec<Problem>) -> Discord {
    let token = at.secret("token");
    Discord {
        platform: at.platform(&[("token", token.is_some())], problems),
        token,
        allowed_roles: at.texts("allowed_roles"),
        require_mention: at.flag("require_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        ignored_channels: at.texts("ignored_channels"),
        no_thread_channels: at.texts("no_thread_channels"),
        auto_thread: at.flag("auto_thread"),
        thread_require_mention: at.flag("thread_require_mention"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
        max_attachment_bytes: at.pick.bytes(&at.path("max_attachment_bytes")),
    }
}

fn slack(at: &Section<'_>, problems: &mut Vec<Problem>) -> Slack {
    let (bot_token, app_token) = (at.secret("token"), at.secret("app_token"));
    let needed = [
        ("token", bot_token.is_some()),
        ("app_token", app_token.is_some()),
    ];
    Slack {
        platform: at.platform(&needed, problems),
        bot_token,
        app_token,
        require_mention: at.flag("require_mention"),
        strict_mention: at.flag("strict_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        mention_patterns: at.texts("mention_patterns"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
    }
}

fn whatsapp(at: &Section<'_>, problems: &mut Vec<Problem>) -> WhatsApp {
    let mut platform = at.platform(&[], problems);
    // It has no credential of its own, so only a written `enabled` switches it on.
    platform.enabled = at.pick.maybe_flag(&at.path("enabled")) == Some(true);
    WhatsApp {
        platform,
        group_allowed_users: at.texts("group_allowed_users"),
        dm_policy: at.text("dm_policy"),
        group_policy: at.text("group_policy"),
        mode: at.text("mode"),
        reply_prefix: at.maybe_text("reply_prefix"),
        require_mention: at.flag("require_mention"),
        bridge_port: at.port("bridge_port"),
    }
}

fn whatsapp_cloud(at: &Section<'_>, problems: &mut Vec<Problem>) -> WhatsAppCloud {
    let (phone_number_id, access_token) =
        (at.maybe_text("phone_number_id"), at.secret("access_token"));
    let needed = [
        ("phone_number_id", phone_number_id.is_some()),
        ("access_token", access_token.is_some()),
    ];
    WhatsAppCloud {
        platform: at.platform(&needed, problems),
        phone_number_id,
        access_token,
        app_secret: at.secret("app_secret"),
        verify_token: at.secret("verify_token"),
        webhook_host: at.text("webhook_host"),
        webhook_port: at.port("webhook_port"),
        webhook_path: at.text("webhook_path"),
        api_version: at.text("api_version"),
        base_url: at.maybe_text("base_url"),
    }
}

fn signal(at: &Section<'_>, problems: &mut Vec<Problem>) -> Signal {
    let (http_url, account) = (at.maybe_text("http_url"), at.maybe_text("account"));
    let needed = [
        ("http_url", http_url.is_some()),
        ("account", account.is_some()),
    ];
    Signal {
        platform: at.platform(&needed, problems),
        http_url,
        account,
        group_allowed_users: at.texts("group_allowed_users"),
        ignore_stories: at.flag("ignore_stories"),
        require_mention: at.flag("require_mention"),
        reactions: at.flag("reactions"),
    }
}

fn listener(at: &Section<'_>, secret_key: &'static str, problems: &mut Vec<Problem>) -> Webhook {
    let secret = at.secret(secret_key);
    let mut platform = at.platform(&[(secret_key, secret.is_some())], problems);
    // A secret alone must not open a port.
    platform.enabled &= at.pick.maybe_flag(&at.path("enabled")) == Some(true);
    Webhook {
        platform,
        host: at.text("host"),
        port: at.port("port"),
        secret,
    }
}

/// One platform's keys, by their short names.
struct Section<'a> {
    pick: &'a Pick<'a>,
    name: &'static str,
}

impl<'a> Section<'a> {
    fn new(pick: &'a Pick<'a>, name: &'static str) -> Self {
        Self { pick, name }
    }

    /// Used if switched on, or if nobody said and it has what it needs.
    fn platform(&self, needed: &[(&str, bool)], problems: &mut Vec<Problem>) -> Platform {
        let complete = needed.iter().all(|(_, there)| *there);
        let written = self.pick.maybe_flag(&self.path("enabled"));
        if written == Some(true) {
            for (key, _) in needed.iter().filter(|(_, there)| !there) {
                problems.push(
                    self.wrong(
                        "enabled",
                        format!("{} is enabled and has no {key}", self.name),
                    )
                    .help(format!("set {}, or switch it off", self.variable(key))),
                );
            }
        }
        let has_users = self.name != "webhook" && self.name != "api_server";
        Platform {
            name: self.name,
            enabled: written.unwrap_or(complete),
            terminal_backend: self.pick.maybe_choice(&self.path("terminal_backend")),
            allowed_users: if has_users {
                self.texts("allowed_users")
            } else {
                Vec::new()
            },
            allow_all_users: has_users && self.flag("allow_all_users"),
            stranger: self
                .pick
                .maybe_choice(&self.path("unauthorized_dm_behavior"))
                .unwrap_or_else(|| self.pick.choice("unauthorized_dm_behavior")),
            reply_to_mode: self.text("reply_to_mode"),
            typing_indicator: self.flag("typing_indicator"),
            restart_notification: self.flag("gateway_restart_notification"),
            admins: self.texts("allow_admin_from"),
            user_commands: self.texts("user_allowed_commands"),
            group_admins: self.texts("group_allow_admin_from"),
            group_user_commands: self.texts("group_user_allowed_commands"),
            home_channel: has_users.then(|| self.home_channel()).flatten(),
            channel_overrides: match self.pick.tree(&self.path("channel_overrides")) {
                Some(serde_json::Value::Object(channels)) => channels.into_iter().collect(),
                _ => BTreeMap::new(),
            },
        }
    }

    /// An id, or a map that holds one.
    fn home_channel(&self) -> Option<String> {
        let tree = self.pick.tree(&self.path("home_channel"))?;
        let id = tree.get("chat_id").unwrap_or(&tree);
        match id {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn path(&self, key: &str) -> String {
        format!("platforms.{}.{key}", self.name)
    }

    fn variable(&self, key: &str) -> String {
        crate::schema::SCHEMA
            .key(&self.path(key))
            .and_then(|key| key.variable.clone())
            .unwrap_or_else(|| self.path(key))
    }

    fn wrong(&self, key: &str, what: impl Into<String>) -> Problem {
        self.pick.wrong(&self.path(key), what)
    }

    fn flag(&self, key: &str) -> bool {
        self.pick.flag(&self.path(key))
    }

    fn text(&self, key: &str) -> String {
        self.pick.text(&self.path(key))
    }

    fn maybe_text(&self, key: &str) -> Option<String> {
        self.pick.maybe_text(&self.path(key))
    }

    fn texts(&self, key: &str) -> Vec<String> {
        self.pick.texts(&self.path(key))
    }

    fn secret(&self, key: &str) -> Option<Secret> {
        self.pick.secret(&self.path(key))
    }

    fn port(&self, key: &str) -> u16 {
        self.pick.count(&self.path(key))
    }
}
