//! The chat platforms.

mod discord;
mod listener;
mod matrix;
mod signal;
mod slack;
mod telegram;
mod whatsapp;

pub use discord::{DiscordAccount, DiscordBackfill, DiscordPlatform};
pub use listener::WebhookPlatform;
pub use matrix::{MatrixAccount, MatrixCredentials, MatrixEncryption, MatrixPlatform};
pub use signal::{SignalAccount, SignalPlatform};
pub use slack::{SlackAccountConfig, SlackIntake, SlackPlatform};
pub use telegram::{TelegramAccount, TelegramPlatform, TelegramWebhook};
pub use whatsapp::{WhatsApp, WhatsAppCloudPlatform, WhatsAppNumber};

use std::collections::BTreeMap;

use hermetic_types::{BackendKind, Secret};

use super::pick::{SettingPicker, words};
use crate::problem::ConfigProblem;

/// Every platform; `enabled` says whether it is used.
#[derive(Clone, Debug)]
pub struct PlatformConfigs {
    pub telegram: TelegramPlatform,
    pub discord: DiscordPlatform,
    pub slack: SlackPlatform,
    pub whatsapp: WhatsApp,
    pub whatsapp_cloud: WhatsAppCloudPlatform,
    pub signal: SignalPlatform,
    pub matrix: MatrixPlatform,
    pub webhook: WebhookPlatform,
    pub api_server: WebhookPlatform,
    /// On every platform.
    pub allowed_users: Vec<String>,
    pub allow_all_users: bool,
}

/// What every platform has.
#[derive(Clone, Debug)]
pub struct PlatformConfig {
    pub name: &'static str,
    pub enabled: bool,
    /// Instead of the gateway's.
    pub terminal_backend: Option<BackendKind>,
    /// The agent that answers there; instead of the gateway's.
    pub agent: Option<String>,
    pub allowed_users: Vec<String>,
    pub allow_all_users: bool,
    pub stranger: StrangerPolicy,
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
pub enum StrangerPolicy {
    /// A code that the operator can approve.
    Pair,
    Ignore,
}

words!(StrangerPolicy { "pair" => Pair, "ignore" => Ignore });

impl PlatformConfig {
    /// The platform that it is a section of: WhatsApp has two, one for each way to it.
    pub fn kind(&self) -> Option<hermetic_types::Platform> {
        let name = self.name.strip_suffix("_cloud").unwrap_or(self.name);
        name.parse().ok()
    }
}

impl PlatformConfigs {
    pub fn all(&self) -> [&PlatformConfig; 9] {
        [
            &self.telegram.platform,
            &self.discord.platform,
            &self.slack.platform,
            &self.whatsapp.platform,
            &self.whatsapp_cloud.platform,
            &self.signal.platform,
            &self.matrix.platform,
            &self.webhook.platform,
            &self.api_server.platform,
        ]
    }

    pub fn enabled(&self) -> impl Iterator<Item = &PlatformConfig> {
        self.all().into_iter().filter(|platform| platform.enabled)
    }

    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        Self {
            telegram: telegram::telegram(&PlatformSection::new(pick, "telegram"), problems),
            discord: discord::discord(&PlatformSection::new(pick, "discord"), problems),
            slack: slack::slack(&PlatformSection::new(pick, "slack"), problems),
            whatsapp: whatsapp::whatsapp(&PlatformSection::new(pick, "whatsapp"), problems),
            whatsapp_cloud: whatsapp::whatsapp_cloud(
                &PlatformSection::new(pick, "whatsapp_cloud"),
                problems,
            ),
            signal: signal::signal(&PlatformSection::new(pick, "signal"), problems),
            matrix: matrix::matrix(&PlatformSection::new(pick, "matrix"), problems),
            webhook: listener::listener(&PlatformSection::new(pick, "webhook"), "secret", problems),
            api_server: listener::listener(
                &PlatformSection::new(pick, "api_server"),
                "key",
                problems,
            ),
            allowed_users: pick.texts("GATEWAY_ALLOWED_USERS"),
            allow_all_users: pick.flag("GATEWAY_ALLOW_ALL_USERS"),
        }
    }
}

/// One platform's keys, by their short names.
struct PlatformSection<'a> {
    pick: &'a SettingPicker<'a>,
    name: &'static str,
}

impl<'a> PlatformSection<'a> {
    fn new(pick: &'a SettingPicker<'a>, name: &'static str) -> Self {
        Self { pick, name }
    }

    /// Used if switched on, or if nobody said and it has what it needs.
    fn platform(
        &self,
        needed: &[(&str, bool)],
        problems: &mut Vec<ConfigProblem>,
    ) -> PlatformConfig {
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
        PlatformConfig {
            name: self.name,
            enabled: written.unwrap_or(complete),
            terminal_backend: self.pick.maybe_choice(&self.path("terminal_backend")),
            agent: self
                .pick
                .maybe_text(&self.path("agent"))
                .map(|name| name.to_ascii_lowercase()),
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

    /// An id, or a map that holds one. On Matrix it may be called a room, too.
    fn home_channel(&self) -> Option<String> {
        let room = || match self.name {
            "matrix" => self.maybe_text("home_room").filter(|room| !room.is_empty()),
            _ => None,
        };
        let tree = self.pick.tree(&self.path("home_channel"));
        let tree = tree.or_else(|| room().map(serde_json::Value::String))?;
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

    fn wrong(&self, key: &str, what: impl Into<String>) -> ConfigProblem {
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
