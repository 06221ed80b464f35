//! Slack, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_config::{Config, SlackAccountConfig, SlackIntake};
use hermetic_slack::{HeardBots, SlackAdapter, SlackConfig, SlackEventIntake, SlackHearing};
use hermetic_types::{AccountId, AccountName, ChatId, Platform};

use super::{AdapterSurroundings, ChatAccount, ListenAddress, PlatformSetup, SetupValue};
use crate::AppFailure;

/// How a first bot is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Slack,
    title: "Slack",
    guide: "docs/guides/slack.md",
    values: &[
        SetupValue {
            variable: "SLACK_BOT_TOKEN",
            what: "the bot token (xoxb-…); your app's page, OAuth & Permissions",
            is_secret: true,
            instead: &[],
        },
        SetupValue {
            variable: "SLACK_APP_TOKEN",
            what: "the app-level token (xapp-…) with connections:write; your app's page, Basic Information",
            is_secret: true,
            // Slack posts to us then, and no socket is opened.
            instead: &["SLACK_EVENTS_URL", "SLACK_SIGNING_SECRET"],
        },
    ],
    fixed: &[],
    allowlist: "SLACK_ALLOWED_USERS",
    person: "member ids, such as U0123ABCD; in a person's profile, More, Copy member ID",
};

/// Every workspace that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().slack;
    let in_use = settings.platform.enabled;
    let accounts = settings.accounts.iter().filter(|_| in_use);
    accounts
        .map(|(name, account)| open(config, name, account, around))
        .collect()
}

fn open(
    config: &Config,
    name: &AccountName,
    account: &SlackAccountConfig,
    around: &AdapterSurroundings<'_>,
) -> Result<ChatAccount, AppFailure> {
    let (intake, listen) = intake(&account.intake);
    let mut wanted = SlackConfig::new(account.bot_token.clone(), intake, around.clock());
    wanted.account = AccountId::new(Platform::Slack, name.clone());
    if let Some(base) = &account.base_url {
        wanted.api_base = base.trim_end_matches('/').to_owned();
    }
    wanted.proxy = super::own_proxy(config, account.proxy.as_deref())?;
    wanted.hearing = hearing(config);
    let name = wanted.account.clone();
    let slack = SlackAdapter::new(wanted, around.state(&name)).map_err(|error| {
        AppFailure::caused(
            &error,
            "look at SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, base_url, proxy and accounts of slack",
        )
        .during(name)
    })?;
    Ok(ChatAccount {
        chat: Arc::new(slack),
        listen,
    })
}

fn intake(configured: &SlackIntake) -> (SlackEventIntake, Option<ListenAddress>) {
    match configured {
        SlackIntake::SocketMode { app_token } => {
            let app_token = app_token.clone();
            (SlackEventIntake::SocketMode { app_token }, None)
        }
        SlackIntake::EventsApi {
            url,
            signing_secret,
            host,
            port,
        } => {
            let intake = SlackEventIntake::EventsApi {
                url: url.clone(),
                signing_secret: signing_secret.clone(),
            };
            // Something with a certificate stands in front.
            let listen = ListenAddress {
                host: host.clone(),
                port: *port,
                setting: "SLACK_EVENTS_PORT",
            };
            (intake, Some(listen))
        }
    }
}

/// What in a channel is meant for us, the same in every workspace.
fn hearing(config: &Config) -> SlackHearing {
    let settings = &config.platforms().slack;
    SlackHearing {
        require_mention: settings.require_mention,
        strict_mention: settings.strict_mention,
        free_response_channels: channels(&settings.free_response_channels),
        allowed_channels: channels(&settings.allowed_channels),
        bots: match settings.allow_bots.as_str() {
            "all" | "true" => HeardBots::Hear,
            "mentions" => HeardBots::HearMentions,
            _ => HeardBots::Ignore,
        },
    }
}

fn channels(listed: &[String]) -> BTreeSet<ChatId> {
    let ids = listed
        .iter()
        .filter_map(|text| ChatId::new(text.as_str()).ok());
    ids.collect()
}
