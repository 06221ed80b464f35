//! Telegram.

use std::collections::BTreeMap;

use hermetic_types::{AccountName, Secret};

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};

#[derive(Clone, Debug)]
pub struct TelegramPlatform {
    pub platform: PlatformConfig,
    /// Every bot by its name; the platform's own is called `default`.
    pub accounts: BTreeMap<AccountName, TelegramAccount>,
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

/// One bot.
#[derive(Clone, Debug)]
pub struct TelegramAccount {
    pub token: Secret,
    pub base_url: Option<String>,
    pub proxy: Option<String>,
    pub webhook: Option<TelegramWebhook>,
}

/// Where Telegram posts to a bot.
#[derive(Clone, Debug)]
pub struct TelegramWebhook {
    pub url: String,
    pub secret: Secret,
    pub host: String,
    pub port: u16,
}

pub(super) fn telegram(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> TelegramPlatform {
    let accounts = accounts(at, problems);
    let platform = at.platform(&[("token", !accounts.is_empty())], problems);
    TelegramPlatform {
        platform,
        accounts,
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

fn accounts(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, TelegramAccount> {
    let mut accounts = BTreeMap::new();
    let own = at.secret("token").map(|token| TelegramAccount {
        token,
        base_url: at.maybe_text("base_url"),
        proxy: at.maybe_text("proxy"),
        webhook: None,
    });
    let url = at.maybe_text("webhook_url");
    let webhook = webhook(at, url, at.secret("webhook_secret"), problems);
    accounts.extend(own.map(|own| (AccountName::default(), TelegramAccount { webhook, ..own })));
    for (name, record) in at.pick.table(&at.path("accounts")) {
        match name.parse::<AccountName>() {
            Ok(name) if accounts.contains_key(&name) => problems.push(
                at.wrong(
                    "accounts",
                    format!("the bot {} is there twice", name.as_str()),
                )
                .help("`token` beside `accounts` is the bot called default"),
            ),
            Ok(name) => match account(at, record, problems) {
                // Two pollers of one bot would each take its messages, and answer twice.
                Some(bot) if is_there(&accounts, &bot) => problems.push(at.wrong(
                    "accounts",
                    format!("the bot {} has the token of another", name.as_str()),
                )),
                bot => accounts.extend(bot.map(|bot| (name, bot))),
            },
            Err(error) => problems.push(at.wrong("accounts", error.to_string())),
        }
    }
    accounts
}

fn is_there(accounts: &BTreeMap<AccountName, TelegramAccount>, bot: &TelegramAccount) -> bool {
    let is_same = |other: &TelegramAccount| {
        // A token is good at the server that gave it out, and at no other.
        other.token.expose() == bot.token.expose() && other.base_url == bot.base_url
    };
    accounts.values().any(is_same)
}

/// What it does not say is as for the platform's own.
fn account(
    at: &PlatformSection<'_>,
    record: &RecordValue,
    problems: &mut Vec<ConfigProblem>,
) -> Option<TelegramAccount> {
    let secret = |name| match record.get(name) {
        Some(SettingValue::Secret(secret)) => Some(secret.clone()),
        _ => None,
    };
    let url = field(record, "webhook_url");
    let shared = || at.secret("webhook_secret");
    let mut webhook = webhook(at, url, secret("webhook_secret").or_else(shared), problems);
    if let Some(webhook) = &mut webhook {
        webhook.host = field(record, "webhook_host").unwrap_or(webhook.host.clone());
        if let Some(SettingValue::Whole(port)) = record.get("webhook_port") {
            webhook.port = u16::try_from(*port).unwrap_or(webhook.port);
        }
    }
    Some(TelegramAccount {
        token: secret("token")?,
        base_url: field(record, "base_url").or_else(|| at.maybe_text("base_url")),
        proxy: field(record, "proxy").or_else(|| at.maybe_text("proxy")),
        webhook,
    })
}

fn webhook(
    at: &PlatformSection<'_>,
    url: Option<String>,
    secret: Option<Secret>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<TelegramWebhook> {
    let url = url?;
    let Some(secret) = secret else {
        problems.push(
            at.wrong(
                "webhook_url",
                "a webhook without a secret takes messages from anybody",
            )
            .help("set TELEGRAM_WEBHOOK_SECRET, or leave the webhook out to poll"),
        );
        return None;
    };
    Some(TelegramWebhook {
        url,
        secret,
        host: at.text("webhook_host"),
        port: at.port("webhook_port"),
    })
}
