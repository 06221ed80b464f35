//! Slack.

use std::collections::BTreeMap;

use hermetic_types::{AccountName, Secret};

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};

#[derive(Clone, Debug)]
pub struct SlackPlatform {
    pub platform: PlatformConfig,
    /// Every workspace by its name; the platform's own is called `default`.
    pub accounts: BTreeMap<AccountName, SlackAccountConfig>,
    pub require_mention: bool,
    pub strict_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub allow_bots: String,
}

/// One workspace, and the app that is installed in it.
#[derive(Clone, Debug)]
pub struct SlackAccountConfig {
    pub bot_token: Secret,
    pub intake: SlackIntake,
    pub base_url: Option<String>,
    pub proxy: Option<String>,
}

/// How its events come.
#[derive(Clone, Debug)]
pub enum SlackIntake {
    SocketMode {
        app_token: Secret,
    },
    EventsApi {
        url: String,
        signing_secret: Secret,
        host: String,
        port: u16,
    },
}

pub(super) fn slack(at: &PlatformSection<'_>, problems: &mut Vec<ConfigProblem>) -> SlackPlatform {
    let accounts = accounts(at, problems);
    let has_intake = at.secret("app_token").is_some() || at.maybe_text("events_url").is_some();
    let others = !accounts.is_empty();
    let needed = [
        ("token", others || at.secret("token").is_some()),
        ("app_token", others || has_intake),
    ];
    SlackPlatform {
        platform: at.platform(&needed, problems),
        accounts,
        require_mention: at.flag("require_mention"),
        strict_mention: at.flag("strict_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        allow_bots: at.text("allow_bots"),
    }
}

fn accounts(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, SlackAccountConfig> {
    let mut accounts = BTreeMap::new();
    let own = at.secret("token").and_then(|bot_token| {
        let events = events(
            at,
            &RecordValue::default(),
            at.maybe_text("events_url"),
            problems,
        );
        let sockets = || {
            at.secret("app_token")
                .map(|app_token| SlackIntake::SocketMode { app_token })
        };
        Some(SlackAccountConfig {
            bot_token,
            intake: events.or_else(sockets)?,
            base_url: at.maybe_text("base_url"),
            proxy: at.maybe_text("proxy"),
        })
    });
    accounts.extend(own.map(|own| (AccountName::default(), own)));
    for (name, record) in at.pick.table(&at.path("accounts")) {
        match name.parse::<AccountName>() {
            Ok(name) => add(at, &mut accounts, name, record, problems),
            Err(error) => problems.push(at.wrong("accounts", error.to_string())),
        }
    }
    accounts
}

fn add(
    at: &PlatformSection<'_>,
    accounts: &mut BTreeMap<AccountName, SlackAccountConfig>,
    name: AccountName,
    record: &RecordValue,
    problems: &mut Vec<ConfigProblem>,
) {
    let mut refuse = |why: &str, help: &str| {
        let wrong = at.wrong("accounts", format!("the bot {} {why}", name.as_str()));
        problems.push(wrong.help(help));
    };
    if accounts.contains_key(&name) {
        return refuse(
            "is there twice",
            "`token` beside `accounts` is the bot called default",
        );
    }
    let has_address = field(record, "events_url").is_some();
    if !has_address && secret(record, "app_token").is_none() {
        return refuse(
            "has neither app_token nor events_url",
            "give it the app token of its own app",
        );
    }
    let Some(bot) = account(at, record, problems) else {
        return;
    };
    if shares_app(accounts, &bot) {
        let wrong = format!("the bot {} has a token of another", name.as_str());
        let help = "make an app for each workspace: Slack spreads the events of one app over \
                    all of its sockets";
        problems.push(at.wrong("accounts", wrong).help(help));
        return;
    }
    accounts.insert(name, bot);
}

/// What it does not say is as for the platform's own, but for tokens.
fn account(
    at: &PlatformSection<'_>,
    record: &RecordValue,
    problems: &mut Vec<ConfigProblem>,
) -> Option<SlackAccountConfig> {
    let events = events(at, record, field(record, "events_url"), problems);
    let sockets = || {
        let app_token = secret(record, "app_token")?;
        Some(SlackIntake::SocketMode { app_token })
    };
    Some(SlackAccountConfig {
        bot_token: secret(record, "token")?,
        intake: events.or_else(sockets)?,
        base_url: field(record, "base_url").or_else(|| at.maybe_text("base_url")),
        proxy: field(record, "proxy").or_else(|| at.maybe_text("proxy")),
    })
}

fn events(
    at: &PlatformSection<'_>,
    record: &RecordValue,
    url: Option<String>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<SlackIntake> {
    let url = url?;
    let shared = || at.secret("signing_secret");
    let Some(signing_secret) = secret(record, "signing_secret").or_else(shared) else {
        problems.push(
            at.wrong(
                "events_url",
                "events without a signing secret could be anybody's",
            )
            .help("set SLACK_SIGNING_SECRET, or leave events_url out to use Socket Mode"),
        );
        return None;
    };
    let port = match record.get("events_port") {
        Some(SettingValue::Whole(port)) => u16::try_from(*port).ok(),
        _ => None,
    };
    Some(SlackIntake::EventsApi {
        url,
        signing_secret,
        host: field(record, "events_host").unwrap_or_else(|| at.text("events_host")),
        port: port.unwrap_or_else(|| at.port("events_port")),
    })
}

/// Two that listen with one app would take each other's events.
fn shares_app(
    accounts: &BTreeMap<AccountName, SlackAccountConfig>,
    bot: &SlackAccountConfig,
) -> bool {
    let app = |account: &SlackAccountConfig| match &account.intake {
        SlackIntake::SocketMode { app_token } => Some(app_token.expose().to_owned()),
        SlackIntake::EventsApi { .. } => None,
    };
    accounts.values().any(|other| {
        let same_app = app(bot).is_some() && app(bot) == app(other);
        // A token is good at the server that gave it out, and at no other.
        let same_bot = other.bot_token.expose() == bot.bot_token.expose();
        (same_app || same_bot) && other.base_url == bot.base_url
    })
}

fn secret(record: &RecordValue, name: &str) -> Option<Secret> {
    match record.get(name) {
        Some(SettingValue::Secret(secret)) => Some(secret.clone()),
        _ => None,
    }
}
