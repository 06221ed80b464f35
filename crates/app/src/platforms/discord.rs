//! Discord, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_config::{Config, DiscordAccount};
use hermetic_discord::{
    BackfillLimits, CommandArgument, CommandSync, DiscordAdapter, DiscordConfig, DiscordHearing,
    SlashCommand,
};
use hermetic_gateway::{COMMANDS, CommandDescription};
use hermetic_types::{AccountId, AccountName, ChatId, Platform};

use super::{AdapterSurroundings, ChatAccount, PlatformSetup, SetupValue};
use crate::AppFailure;

/// How a first bot is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Discord,
    title: "Discord",
    guide: "docs/guides/discord.md",
    values: &[SetupValue {
        variable: "DISCORD_BOT_TOKEN",
        what: "the bot's token; Discord's developer portal shows it once, under Bot",
        is_secret: true,
        instead: &[],
    }],
    fixed: &[],
    allowlist: "DISCORD_ALLOWED_USERS",
    person: "numeric ids, such as 80351110224678912; in Developer Mode, Copy User ID tells you yours",
};

/// Every bot that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().discord;
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
    account: &DiscordAccount,
) -> Result<ChatAccount, AppFailure> {
    let settings = &config.platforms().discord;
    let id = AccountId::new(Platform::Discord, name.clone());
    let mut wanted = DiscordConfig::new(account.token.clone(), around.clock());
    wanted.account = id.clone();
    if let Some(base) = &account.base_url {
        wanted.base_url.clone_from(base);
    }
    wanted.proxy = super::own_proxy(config, account.proxy.as_deref())?;
    wanted.hearing = hearing(config);
    wanted.message_content = settings.message_content;
    wanted.needs_roles = !settings.allowed_roles.is_empty();
    wanted.backfill = BackfillLimits {
        enabled: settings.backfill.enabled,
        window: settings.backfill.window,
        limit: settings.backfill.limit,
        max_dispatches: settings.backfill.max_dispatches,
    };
    wanted.max_attachment_bytes = settings.max_attachment_bytes;
    wanted.commands = COMMANDS.iter().map(command).collect();
    wanted.command_sync = match settings.command_sync_policy.as_str() {
        "off" => CommandSync::Off,
        "bulk" => CommandSync::Bulk,
        _ => CommandSync::Safe,
    };
    let discord = DiscordAdapter::new(wanted, around.state(&id)).map_err(|error| {
        let remedy = "look at DISCORD_BOT_TOKEN, base_url, proxy and accounts of discord";
        AppFailure::caused(&error, remedy).during(id)
    })?;
    Ok(ChatAccount {
        chat: Arc::new(discord),
        listen: None,
    })
}

/// What in a server is meant for us, the same for every bot.
fn hearing(config: &Config) -> DiscordHearing {
    let settings = &config.platforms().discord;
    DiscordHearing {
        require_mention: settings.require_mention,
        thread_require_mention: settings.thread_require_mention,
        free_response_channels: ids(&settings.free_response_channels),
        allowed_channels: ids(&settings.allowed_channels),
        ignored_channels: ids(&settings.ignored_channels),
        auto_thread: settings.auto_thread,
        no_thread_channels: ids(&settings.no_thread_channels),
        bots: matches!(settings.allow_bots.as_str(), "all" | "true" | "mentions"),
    }
}

fn command(listed: &CommandDescription) -> SlashCommand {
    SlashCommand {
        name: listed.name.to_owned(),
        description: listed.about.to_owned(),
        argument: listed.argument.map(|argument| CommandArgument {
            name: argument.name.to_owned(),
            description: argument.about.to_owned(),
            required: argument.required,
            words: argument
                .words
                .iter()
                .map(|word| (*word).to_owned())
                .collect(),
        }),
    }
}

fn ids(listed: &[String]) -> BTreeSet<ChatId> {
    let ids = listed.iter().map(|id| ChatId::new(id.trim()));
    ids.filter_map(Result::ok).collect()
}
