//! Telegram, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_config::{Config, TelegramAccount};
use hermetic_gateway::COMMANDS;
use hermetic_telegram::{
    MenuCommand, TelegramAdapter, TelegramConfig, TelegramHearing, TelegramIntake,
};
use hermetic_types::{AccountId, AccountName, Platform};

use super::{AdapterSurroundings, ChatAccount, ListenAddress, PlatformSetup, SetupValue};
use crate::AppFailure;

/// How a first bot is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Telegram,
    title: "Telegram",
    guide: "docs/guides/telegram.md",
    values: &[SetupValue {
        variable: "TELEGRAM_BOT_TOKEN",
        what: "the bot's token; write /newbot to @BotFather to get one",
        is_secret: true,
        instead: &[],
    }],
    fixed: &[],
    allowlist: "TELEGRAM_ALLOWED_USERS",
    person: "numeric ids, such as 4711; @userinfobot tells you yours",
};

/// Every bot that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().telegram;
    let in_use = settings.platform.enabled;
    let accounts = settings.accounts.iter().filter(|_| in_use);
    accounts
        .map(|(name, account)| open(config, around, name, account))
        .collect()
}

fn open(
    config: &Config,
    around: &AdapterSurroundings<'_>,
    name: &AccountName,
    account: &TelegramAccount,
) -> Result<ChatAccount, AppFailure> {
    let mut wanted = TelegramConfig::new(account.token.clone(), around.clock());
    wanted.account = AccountId::new(Platform::Telegram, name.clone());
    if let Some(base) = &account.base_url {
        wanted.api_base = base.trim_end_matches('/').to_owned();
    }
    wanted.proxy = super::own_proxy(config, account.proxy.as_deref())?;
    wanted.hearing = hearing(config);
    wanted.commands = COMMANDS
        .iter()
        .map(|command| MenuCommand {
            name: command.name.to_owned(),
            about: command.about.to_owned(),
        })
        .collect();
    if let Some(webhook) = &account.webhook {
        wanted.intake = TelegramIntake::Webhook {
            url: webhook.url.clone(),
            secret: webhook.secret.clone(),
        };
    }
    let name = wanted.account.clone();
    let telegram = TelegramAdapter::new(wanted).map_err(|error| {
        AppFailure::caused(
            &error,
            "look at TELEGRAM_BOT_TOKEN, TELEGRAM_WEBHOOK_SECRET, base_url, proxy and accounts of telegram",
        )
        .during(name)
    })?;
    Ok(ChatAccount {
        chat: Arc::new(telegram),
        // Something with a certificate stands in front.
        listen: account.webhook.as_ref().map(|webhook| ListenAddress {
            host: webhook.host.clone(),
            port: webhook.port,
            setting: "TELEGRAM_WEBHOOK_PORT",
        }),
    })
}

/// What in a group is meant for us, the same for every bot.
fn hearing(config: &Config) -> TelegramHearing {
    let settings = &config.platforms().telegram;
    TelegramHearing {
        require_mention: settings.require_mention,
        free_response_chats: ids(&settings.free_response_chats),
        allowed_chats: ids(&settings.allowed_chats),
        allowed_topics: ids(&settings.allowed_topics),
        ignored_threads: ids(&settings.ignored_threads),
        bots: matches!(settings.allow_bots.as_str(), "all" | "true" | "mentions"),
    }
}

fn ids<T: TryFrom<String> + Ord>(listed: &[String]) -> BTreeSet<T> {
    listed
        .iter()
        .filter_map(|text| T::try_from(text.clone()).ok())
        .collect()
}
