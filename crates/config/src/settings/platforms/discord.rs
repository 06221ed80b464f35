//! Discord.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::{AccountName, Secret};

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};

#[derive(Clone, Debug)]
pub struct DiscordPlatform {
    pub platform: PlatformConfig,
    pub allowed_roles: Vec<String>,
    /// Every bot by its name; the platform's own is called `default`.
    pub accounts: BTreeMap<AccountName, DiscordAccount>,
    /// Whether the text of messages that do not mention the bot is asked for.
    pub message_content: bool,
    pub require_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub ignored_channels: Vec<String>,
    pub no_thread_channels: Vec<String>,
    pub auto_thread: bool,
    pub thread_require_mention: bool,
    pub allow_bots: String,
    pub backfill: DiscordBackfill,
    /// `safe`, `bulk` or `off`.
    pub command_sync_policy: String,
    pub max_attachment_bytes: u64,
}

/// One bot.
#[derive(Clone, Debug)]
pub struct DiscordAccount {
    pub token: Secret,
    pub base_url: Option<String>,
    pub proxy: Option<String>,
}

/// How much of what was missed is read: `missed_message_backfill`.
#[derive(Clone, Copy, Debug)]
pub struct DiscordBackfill {
    pub enabled: bool,
    pub window: Duration,
    pub limit: usize,
    pub max_dispatches: usize,
}

pub(super) fn discord(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> DiscordPlatform {
    let accounts = accounts(at, problems);
    DiscordPlatform {
        platform: at.platform(&[("token", !accounts.is_empty())], problems),
        allowed_roles: at.texts("allowed_roles"),
        accounts,
        message_content: at.flag("message_content"),
        require_mention: at.flag("require_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        ignored_channels: at.texts("ignored_channels"),
        no_thread_channels: at.texts("no_thread_channels"),
        auto_thread: at.flag("auto_thread"),
        thread_require_mention: at.flag("thread_require_mention"),
        allow_bots: at.text("allow_bots"),
        backfill: backfill(at),
        command_sync_policy: at.text("command_sync_policy"),
        max_attachment_bytes: at.pick.bytes(&at.path("max_attachment_bytes")),
    }
}

fn backfill(at: &PlatformSection<'_>) -> DiscordBackfill {
    let path = |name: &str| at.path(&format!("missed_message_backfill.{name}"));
    DiscordBackfill {
        enabled: at.flag("missed_message_backfill.enabled"),
        window: Duration::from_secs(at.pick.count(&path("window_seconds"))),
        limit: at.pick.count(&path("limit")),
        max_dispatches: at.pick.count(&path("max_dispatches")),
    }
}

fn accounts(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, DiscordAccount> {
    let mut accounts = BTreeMap::new();
    let own = at.secret("token").map(|token| DiscordAccount {
        token,
        base_url: at.maybe_text("base_url"),
        proxy: at.maybe_text("proxy"),
    });
    accounts.extend(own.map(|own| (AccountName::default(), own)));
    for (name, record) in at.pick.table(&at.path("accounts")) {
        let Some(bot) = account(at, record) else {
            continue;
        };
        match name.parse::<AccountName>() {
            Ok(name) if accounts.contains_key(&name) || is_there(&accounts, &bot) => problems.push(
                // Two connections of one bot would each be told everything, and answer twice.
                at.wrong(
                    "accounts",
                    format!("the bot {} is there twice", name.as_str()),
                )
                .help("`token` beside `accounts` is the bot called default"),
            ),
            Ok(name) => {
                accounts.insert(name, bot);
            }
            Err(error) => problems.push(at.wrong("accounts", error.to_string())),
        }
    }
    accounts
}

/// What it does not say is as for the platform's own.
fn account(at: &PlatformSection<'_>, record: &RecordValue) -> Option<DiscordAccount> {
    let Some(SettingValue::Secret(token)) = record.get("token") else {
        return None;
    };
    Some(DiscordAccount {
        token: token.clone(),
        base_url: field(record, "base_url").or_else(|| at.maybe_text("base_url")),
        proxy: field(record, "proxy").or_else(|| at.maybe_text("proxy")),
    })
}

fn is_there(accounts: &BTreeMap<AccountName, DiscordAccount>, bot: &DiscordAccount) -> bool {
    let is_same = |other: &DiscordAccount| {
        // A token is good at the server that gave it out, and at no other.
        other.token.expose() == bot.token.expose() && other.base_url == bot.base_url
    };
    accounts.values().any(is_same)
}
