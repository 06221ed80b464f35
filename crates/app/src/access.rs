//! Who may speak, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_access::{Access, Bots, Pairing, PlatformSettings, Settings, UnauthorizedDm, Users};
use hermetic_config::{Config, Stranger};
use hermetic_gateway::{CommandAccess, CommandRule, PlatformCommandAccess, StoredPairings};
use hermetic_store::Store;
use hermetic_types::{AccountId, AccountName, ChatId, Platform, UserId};
use tracing::warn;

pub fn pairing(store: &Store) -> Pairing {
    Pairing::new(Arc::new(StoredPairings::new(store.documents())))
}

pub(crate) fn access(config: &Config, store: &Store) -> Access {
    let platforms = config.platforms();
    let settings = Settings {
        platforms: [
            (Platform::Telegram, telegram(config)),
            (Platform::Discord, discord(config)),
            (Platform::Signal, signal(config)),
            (Platform::Webhook, webhook(config)),
        ]
        .into(),
        allowed_users: users(&platforms.allowed_users),
        allow_all: platforms.allow_all_users,
        group_sessions_per_user: config.sessions().group_per_user,
        thread_sessions_per_user: config.sessions().thread_per_user,
        ..Settings::default()
    };
    Access::new(settings, pairing(store))
}

fn telegram(config: &Config) -> PlatformSettings {
    let telegram = &config.platforms().telegram;
    let platform = &telegram.platform;
    warn_of_names(&[&platform.allowed_users, &telegram.group_allowed_users]);
    PlatformSettings {
        allowed_users: users(&platform.allowed_users),
        group_allowed_users: users(&telegram.group_allowed_users),
        group_allowed_chats: ids(&telegram.group_allowed_chats, ChatId::new),
        allow_all: platform.allow_all_users,
        bots: bots(&telegram.allow_bots),
        operators: operators(config, platform),
        unauthorized_dm: written_stranger(config, platform),
    }
}

/// A channel that is listened to opens no door to its members.
fn discord(config: &Config) -> PlatformSettings {
    let discord = &config.platforms().discord;
    let platform = &discord.platform;
    PlatformSettings {
        allowed_users: users(&platform.allowed_users),
        allow_all: platform.allow_all_users,
        bots: bots(&discord.allow_bots),
        operators: operators(config, platform),
        unauthorized_dm: written_stranger(config, platform),
        ..PlatformSettings::default()
    }
}

fn bots(allowed: &str) -> Bots {
    match allowed {
        "all" | "true" => Bots::All,
        "mentions" => Bots::Mentioning,
        _ => Bots::Refuse,
    }
}

/// A group that is listened to opens no door to its members.
fn signal(config: &Config) -> PlatformSettings {
    let signal = &config.platforms().signal;
    let platform = &signal.platform;
    PlatformSettings {
        allowed_users: users(&platform.allowed_users),
        group_allowed_users: users(&signal.group_allowed_users),
        allow_all: platform.allow_all_users,
        operators: operators(config, platform),
        unauthorized_dm: written_stranger(config, platform),
        ..PlatformSettings::default()
    }
}

/// What a stranger gets, if somebody wrote it. Left to the default, pairing ends where an allowlist begins.
fn written_stranger(
    config: &Config,
    platform: &hermetic_config::Platform,
) -> Option<UnauthorizedDm> {
    let own = format!("platforms.{}.unauthorized_dm_behavior", platform.name);
    let written = config.origin(&own).into_iter();
    let mut written = written.chain(config.origin("unauthorized_dm_behavior"));
    let spelled_out = written.any(|origin| *origin != hermetic_config::Origin::Default);
    spelled_out.then_some(match platform.stranger {
        Stranger::Pair => UnauthorizedDm::Pair,
        Stranger::Ignore => UnauthorizedDm::Ignore,
    })
}

/// Names can be changed and taken over, so they are compared with nothing; who writes one should know.
fn warn_of_names(lists: &[&Vec<String>]) {
    let listed = lists.iter().copied().flatten();
    for entry in listed.filter(|entry| *entry != "*" && entry.parse::<i64>().is_err()) {
        warn!(
            entry,
            "lets nobody in: Telegram's users are listed by their number, which `hermetic pairing \
             list` shows once they were let in by a code, and /whoami tells them"
        );
    }
}

/// Which slash commands are for whom.
pub(crate) fn command_access(config: &Config) -> CommandAccess {
    let enabled = config.platforms().enabled();
    let rules = enabled.filter_map(|platform| {
        let access = PlatformCommandAccess {
            private: command_rule(&platform.admins, &platform.user_commands),
            groups: command_rule(&platform.group_admins, &platform.group_user_commands),
        };
        Some((platform.name.parse().ok()?, access))
    });
    CommandAccess(rules.collect())
}

fn command_rule(admins: &[String], commands: &[String]) -> CommandRule {
    let names = commands.iter();
    CommandRule {
        admins: (!admins.is_empty()).then(|| ids(admins, UserId::new)),
        for_others: names
            .map(|name| name.trim_start_matches('/').to_lowercase())
            .collect(),
    }
}

/// Whoever holds the secret signs for everybody they name, so all of them are guests, but for those whom
/// the operator made approvers on this very platform.
fn webhook(config: &Config) -> PlatformSettings {
    PlatformSettings {
        allow_all: true,
        operators: named_for(config, Platform::Webhook),
        ..PlatformSettings::default()
    }
}

/// Approvers who are listed with this platform's name.
fn named_for(config: &Config, platform: Platform) -> BTreeSet<UserId> {
    let approvers = config.approvals().approvers.iter();
    let named = approvers
        .filter_map(|approver| approver.split_once(':'))
        .filter(|(where_to, _)| is_on(where_to, platform.name()));
    let users: Vec<_> = named.map(|(_, user)| user.to_owned()).collect();
    ids(&users, UserId::new)
}

/// What an entry of `approvals.approvers` means that its writer may not know.
pub(crate) fn warn_of_approvers(config: &Config) {
    for approver in &config.approvals().approvers {
        let account = approver.split_once(':').map(|(account, _)| account);
        let platform =
            account.map(|account| account.parse().map(|account: AccountId| account.platform()));
        match platform {
            None | Some(Ok(Platform::Telegram | Platform::Discord | Platform::Signal)) => {}
            Some(Ok(Platform::Webhook)) => warn!(
                approver,
                "whoever holds WEBHOOK_SECRET can say yes in this name, to questions that this name's own \
                 messages lead to"
            ),
            Some(_) => warn!(
                approver,
                "approvals.approvers names nobody who can be asked: questions go to telegram:<number>, \
                 discord:<number>, signal:<number> and webhook:<name>"
            ),
        }
    }
}

/// Everybody who may answer a question, and the account by which they are asked: the one they are
/// written with, or else the platform's own or first.
pub(crate) fn approvers(config: &Config) -> Vec<(AccountId, UserId)> {
    let platforms = config.platforms();
    let telegram = platforms.telegram.accounts.keys();
    let telegram = asked_on(
        config,
        &platforms.telegram.platform,
        Platform::Telegram,
        telegram,
    );
    let discord = platforms.discord.accounts.keys();
    let discord = asked_on(
        config,
        &platforms.discord.platform,
        Platform::Discord,
        discord,
    );
    let signal = platforms.signal.accounts.keys();
    let signal = asked_on(config, &platforms.signal.platform, Platform::Signal, signal);
    telegram.into_iter().chain(discord).chain(signal).collect()
}

/// Those of one platform, which has these accounts.
fn asked_on<'a>(
    config: &Config,
    settings: &hermetic_config::Platform,
    platform: Platform,
    names: impl Iterator<Item = &'a AccountName>,
) -> Vec<(AccountId, UserId)> {
    let of = |name: &AccountName| AccountId::new(platform, name.clone());
    let accounts: Vec<_> = names.map(of).collect();
    let own = AccountId::from(platform);
    let Some(usual) = accounts
        .iter()
        .find(|account| **account == own)
        .or(accounts.first())
    else {
        return Vec::new();
    };
    let operators = operators(config, settings).into_iter();
    operators
        .flat_map(|user| {
            let mut asked_by = written_with(config, &user);
            asked_by.retain(|account| accounts.contains(account));
            if asked_by.is_empty() {
                asked_by.push(usual.clone());
            }
            asked_by
                .into_iter()
                .map(move |account| (account, user.clone()))
        })
        .collect()
}

/// The accounts with which somebody is listed in `approvals.approvers`, as in `telegram/work:42`.
fn written_with(config: &Config, user: &UserId) -> Vec<AccountId> {
    let approvers = config.approvals().approvers.iter();
    let named = approvers.filter_map(|approver| approver.split_once(':'));
    named
        .filter(|(account, listed)| account.contains('/') && *listed == user.as_str())
        .filter_map(|(account, _)| account.parse().ok())
        .collect()
}

/// Whether a platform, or an account of it, is named.
fn is_on(where_to: &str, platform: &str) -> bool {
    where_to.split('/').next() == Some(platform)
}

/// Admins of the platform, and who may approve there (`platform:user`). Where neither is written, the
/// people whom the operator put on an allowlist by name.
fn operators(config: &Config, platform: &hermetic_config::Platform) -> BTreeSet<UserId> {
    let approvers = config.approvals().approvers.iter();
    // Without a platform it is that person wherever they write.
    let approvers = approvers
        .map(|approver| {
            approver
                .split_once(':')
                .unwrap_or((platform.name, approver))
        })
        .filter(|(where_to, _)| is_on(where_to, platform.name))
        .map(|(_, user)| user.to_owned());
    let mut all: Vec<_> = approvers.chain(platform.admins.iter().cloned()).collect();
    if all.is_empty() && config.approvals().approvers.is_empty() {
        let listed = platform.allowed_users.iter();
        let listed = listed.chain(&config.platforms().allowed_users);
        all.extend(listed.filter(|user| *user != "*").cloned());
    }
    ids(&all, UserId::new)
}

fn users(listed: &[String]) -> Users {
    Users::parse(&listed.join(","), |rejected| {
        warn!(
            entry = rejected,
            "an allowlist entry is no user id and lets nobody in"
        );
    })
}

fn ids<T: Ord, E>(listed: &[String], read: impl Fn(String) -> Result<T, E>) -> BTreeSet<T> {
    listed
        .iter()
        .filter_map(|text| read(text.clone()).ok())
        .collect()
}
