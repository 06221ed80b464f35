//! Who may speak, from the configuration.

pub(crate) mod whatsapp;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use hermetic_access::{
    Access, AccessSettings, BotAdmission, PairingService, PassingRoles, PlatformSettings,
    UnauthorizedDm, UserAllowlist,
};
use hermetic_browser::operator_role;
use hermetic_config::{Config, StrangerPolicy};
use hermetic_dashboard::AccessKey;
use hermetic_gateway::{CommandAccess, CommandRule, PlatformCommandAccess, StoredPairings};
use hermetic_store::Store;
use hermetic_types::{AccountId, AccountName, ChatId, Platform, RoleId, UserId};
use tracing::warn;

pub fn pairing(store: &Store) -> PairingService {
    PairingService::new(Arc::new(StoredPairings::new(store.documents())))
}

/// Tells whether the configuration names anybody who may approve, on any platform.
pub fn names_operators(config: &Config) -> bool {
    let is_somebody = |user: &String| user != "*";
    let platforms = config.platforms();
    // Also of platforms that are switched off for now: whoever wrote a list has said who decides here.
    let sections = platforms.all();
    let listed = sections
        .iter()
        .flat_map(|one| one.admins.iter().chain(&one.allowed_users));
    let mut all = listed.chain(&platforms.allowed_users);
    all.any(is_somebody) || !config.approvals().approvers.is_empty()
}

pub(crate) fn access(config: &Config, store: &Store) -> Access {
    let platforms = config.platforms();
    let settings = AccessSettings {
        platforms: [
            (Platform::Telegram, telegram(config)),
            (Platform::Discord, discord(config)),
            (Platform::Slack, slack(config)),
            (Platform::Signal, signal(config)),
            (Platform::Matrix, matrix(config)),
            (Platform::Webhook, webhook(config)),
            (Platform::Browser, browser(config)),
            (Platform::Whatsapp, whatsapp::settings(config)),
        ]
        .into(),
        allowed_users: users(&platforms.allowed_users),
        allow_all: platforms.allow_all_users,
        group_sessions_per_user: config.sessions().group_per_user,
        thread_sessions_per_user: config.sessions().thread_per_user,
        ..AccessSettings::default()
    };
    Access::new(settings, pairing(store))
}

fn telegram(config: &Config) -> PlatformSettings {
    let telegram = &config.platforms().telegram;
    let platform = &telegram.platform;
    warn_of_names(&[&platform.allowed_users, &telegram.group_allowed_users]);
    PlatformSettings {
        group_allowed_users: users(&telegram.group_allowed_users),
        group_allowed_chats: ids(&telegram.group_allowed_chats, ChatId::new),
        ..members_of(config, platform, Platform::Telegram, &telegram.allow_bots)
    }
}

/// A channel that is listened to opens no door to its members.
fn discord(config: &Config) -> PlatformSettings {
    let discord = &config.platforms().discord;
    let platform = &discord.platform;
    PlatformSettings {
        allowed_roles: ids(&discord.allowed_roles, RoleId::new),
        ..members_of(config, platform, Platform::Discord, &discord.allow_bots)
    }
}

fn slack(config: &Config) -> PlatformSettings {
    let slack = &config.platforms().slack;
    members_of(config, &slack.platform, Platform::Slack, &slack.allow_bots)
}

/// A group that is listened to opens no door to its members.
fn signal(config: &Config) -> PlatformSettings {
    let signal = &config.platforms().signal;
    let platform = &signal.platform;
    PlatformSettings {
        group_allowed_users: users(&signal.group_allowed_users),
        ..members_of(config, platform, Platform::Signal, "none")
    }
}

/// A room that is listened to opens no door to its members.
fn matrix(config: &Config) -> PlatformSettings {
    let matrix = &config.platforms().matrix;
    let bots = if matrix.process_notices {
        "all"
    } else {
        "none"
    };
    members_of(config, &matrix.platform, Platform::Matrix, bots)
}

/// What every platform's people and operators write down the same way.
fn members_of(
    config: &Config,
    section: &hermetic_config::PlatformConfig,
    platform: Platform,
    allow_bots: &str,
) -> PlatformSettings {
    PlatformSettings {
        allowed_users: users(&section.allowed_users),
        allow_all: section.allow_all_users,
        bots: match allow_bots {
            "all" | "true" => BotAdmission::All,
            "mentions" => BotAdmission::Mentioning,
            _ => BotAdmission::Refuse,
        },
        operators: operators(config, platform, counted_lists(platform)),
        unauthorized_dm: unauthorized_dm(config, section),
        ..PlatformSettings::default()
    }
}

/// What strangers get, if that is written; left to the default, pairing ends where an allowlist begins.
pub(crate) fn unauthorized_dm(
    config: &Config,
    section: &hermetic_config::PlatformConfig,
) -> Option<UnauthorizedDm> {
    // By where the value comes from and not by the value: whoever wrote what is the default anyway
    // meant it, also beside an allowlist.
    let own = format!("platforms.{}.unauthorized_dm_behavior", section.name);
    let written = [own.as_str(), "unauthorized_dm_behavior"];
    let mut written = written.into_iter().filter_map(|key| config.origin(key));
    let is_spelled_out = written.any(|origin| *origin != hermetic_config::SettingOrigin::Default);
    is_spelled_out.then_some(match section.stranger {
        StrangerPolicy::Pair => UnauthorizedDm::Pair,
        StrangerPolicy::Ignore => UnauthorizedDm::Ignore,
    })
}

/// The sections of a platform that are in use.
fn sections(
    config: &Config,
    platform: Platform,
) -> impl Iterator<Item = &hermetic_config::PlatformConfig> {
    let enabled = config.platforms().enabled();
    enabled.filter(move |section| section.kind() == Some(platform))
}

/// Whom an entry of a list names on a platform.
pub fn named_on(platform: Platform, entry: &str) -> Option<UserId> {
    match platform {
        #[cfg(feature = "whatsapp")]
        Platform::Whatsapp => crate::platforms::whatsapp_person(entry),
        // Numbers and names of other platforms are nobody's id here.
        Platform::Matrix if !entry.starts_with('@') => None,
        _ => UserId::new(entry).ok(),
    }
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
        let kind = platform.kind()?;
        let access = PlatformCommandAccess {
            private: command_rule(kind, &platform.admins, &platform.user_commands),
            groups: command_rule(kind, &platform.group_admins, &platform.group_user_commands),
        };
        Some((kind, access))
    });
    CommandAccess(rules.collect())
}

fn command_rule(platform: Platform, admins: &[String], commands: &[String]) -> CommandRule {
    let names = commands.iter();
    // By what was written and not by what could be read: admins who are all misspelt must not open
    // their commands to everybody.
    let named = admins.iter().filter_map(|admin| named_on(platform, admin));
    CommandRule {
        admins: (!admins.is_empty()).then(|| named.collect()),
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

/// Nobody writes in the browser who has not proved at the dashboard's login that they operate this gateway, so
/// whoever was let in there is let in here, and nobody else: no list opens this door and no code is offered.
/// What they said or left running is let in for as long as they would be.
fn browser(config: &Config) -> PlatformSettings {
    let dashboard = &config.gateway().dashboard;
    let has_proxy = dashboard
        .proxy_secret
        .as_ref()
        .is_some_and(|it| !it.is_empty());
    let by_proxy = dashboard.proxy_operators.iter().filter(|_| has_proxy);
    let by_proxy = by_proxy.filter_map(|name| UserId::new(format!("proxy:{name}")).ok());
    PlatformSettings {
        operators: named_for(config, Platform::Browser)
            .into_iter()
            .chain(by_proxy)
            .collect(),
        passing_roles: Some(Arc::new(SignedInRoles {
            state: config.home().state(),
        })),
        unauthorized_dm: Some(UnauthorizedDm::Ignore),
        ..PlatformSettings::default()
    }
}

/// The role of those who signed in under the key of the dashboard that there is now: `hermetic dashboard revoke`
/// makes another.
#[derive(Debug)]
struct SignedInRoles {
    state: PathBuf,
}

impl PassingRoles for SignedInRoles {
    // The file each time, and nothing remembered: revoking is another process, and has to hold for
    // what is said and approved from then on, without a restart. A key that cannot be read makes
    // nobody an operator.
    fn makes_operator(&self, role: &RoleId) -> bool {
        let key = AccessKey::load(&self.state).ok().flatten();
        let role_of_now = key.and_then(|key| operator_role(&key.fingerprint()).ok());
        role_of_now.as_ref() == Some(role)
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
            Some(Ok(Platform::Webhook)) => warn!(
                approver,
                "whoever holds WEBHOOK_SECRET can say yes in this name, to questions that this name's own \
                 messages lead to"
            ),
            None | Some(Ok(_)) => {}
            Some(Err(_)) => warn!(
                approver,
                "approvals.approvers names nobody who can be asked: an entry is <platform>:<id>, as in \
                 telegram:4711"
            ),
        }
    }
}

/// Everybody who may answer a question, and the account by which they are asked: the one they are
/// written with, or else the platform's own or first.
pub(crate) fn approvers(config: &Config) -> Vec<(AccountId, UserId)> {
    let platforms = config.platforms();
    let asking = [
        (
            accounts_of(Platform::Telegram, platforms.telegram.accounts.keys()),
            CountedLists::All,
        ),
        (
            accounts_of(Platform::Discord, platforms.discord.accounts.keys()),
            CountedLists::All,
        ),
        (
            accounts_of(Platform::Slack, platforms.slack.accounts.keys()),
            CountedLists::All,
        ),
        (
            accounts_of(Platform::Signal, platforms.signal.accounts.keys()),
            CountedLists::Own,
        ),
        (
            accounts_of(Platform::Matrix, platforms.matrix.accounts.keys()),
            CountedLists::All,
        ),
        // Not who is listed for every platform: a number from elsewhere may be a stranger's telephone.
        (whatsapp::accounts(config), CountedLists::Own),
        (browser_accounts(config), CountedLists::Own),
    ];
    asking
        .iter()
        .flat_map(|(accounts, lists)| approvers_on(config, accounts, *lists))
        .collect()
}

fn browser_accounts(config: &Config) -> Vec<AccountId> {
    let is_there = config.gateway().dashboard.enabled;
    is_there
        .then(|| Platform::Browser.into())
        .into_iter()
        .collect()
}

fn accounts_of<'a>(
    platform: Platform,
    names: impl Iterator<Item = &'a AccountName>,
) -> Vec<AccountId> {
    names
        .map(|name| AccountId::new(platform, name.clone()))
        .collect()
}

/// Those who are asked by one of these accounts, which are of one platform.
fn approvers_on(
    config: &Config,
    accounts: &[AccountId],
    lists: CountedLists,
) -> Vec<(AccountId, UserId)> {
    let is_own = |account: &&AccountId| **account == AccountId::from(account.platform());
    let Some(usual) = accounts.iter().find(is_own).or(accounts.first()) else {
        return Vec::new();
    };
    let operators = operators(config, usual.platform(), lists).into_iter();
    operators
        .flat_map(|user| {
            let mut asked_by = written_with(config, &user);
            asked_by.retain(|account| accounts.contains(account));
            // Also where the account they were written with is gone: a question that reaches nobody
            // waits until it runs out.
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
        .filter(|(account, _)| account.contains('/'))
        .filter_map(|(account, listed)| Some((account.parse::<AccountId>().ok()?, listed)))
        .filter(|(account, listed)| named_on(account.platform(), listed).as_ref() == Some(user))
        .map(|(account, _)| account)
        .collect()
}

/// Whether a platform, or an account of it, is named.
fn is_on(where_to: &str, platform: &str) -> bool {
    where_to.split('/').next() == Some(platform)
}

/// Names the allowlists that count for a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedLists {
    All,
    /// Those that speak of this platform and no other.
    Own,
}

/// Whether somebody who is listed without a platform counts on this one. Not where people are telephone
/// numbers: an id from elsewhere may be a stranger's.
fn counted_lists(platform: Platform) -> CountedLists {
    match platform {
        Platform::Signal | Platform::Whatsapp => CountedLists::Own,
        _ => CountedLists::All,
    }
}

/// Admins of the platform, and who may approve there (`platform:user`). Where neither is written, the
/// people whom the operator put on an allowlist by name.
fn operators(config: &Config, platform: Platform, lists: CountedLists) -> BTreeSet<UserId> {
    let approvers = config.approvals().approvers.iter();
    // Without a platform it is that person wherever they write.
    let approvers = approvers.filter_map(|approver| match approver.split_once(':') {
        Some((where_to, user)) => is_on(where_to, platform.name()).then_some(user),
        None => (lists == CountedLists::All).then_some(approver.as_str()),
    });
    let sections: Vec<_> = sections(config, platform).collect();
    let admins = sections.iter().flat_map(|section| &section.admins);
    let mut all: Vec<&str> = approvers.chain(admins.map(String::as_str)).collect();
    // Of any platform: whoever wrote a list of approvers has said who decides, and it must not grow
    // by everybody who may only talk where that list names nobody.
    if all.is_empty() && config.approvals().approvers.is_empty() {
        let listed = sections.iter().flat_map(|section| &section.allowed_users);
        let everywhere = config.platforms().allowed_users.iter();
        let everywhere = everywhere.filter(|_| lists == CountedLists::All);
        let listed = listed.chain(everywhere).map(String::as_str);
        // A star lets everybody in to talk, and must make nobody an approver.
        all.extend(listed.filter(|user| *user != "*"));
    }
    let named = all.into_iter().filter_map(|user| named_on(platform, user));
    named.collect()
}

fn users(listed: &[String]) -> UserAllowlist {
    UserAllowlist::parse(&listed.join(","), |rejected| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_signed_in_under_another_key_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let roles = SignedInRoles {
            state: folder.path().to_owned(),
        };
        let role_of = |key: &AccessKey| operator_role(&key.fingerprint()).unwrap();
        let key = AccessKey::load_or_create(folder.path()).unwrap();
        assert!(roles.makes_operator(&role_of(&key)));
        let next = AccessKey::replace(folder.path()).unwrap();
        assert!(!roles.makes_operator(&role_of(&key)));
        assert!(roles.makes_operator(&role_of(&next)));
        std::fs::remove_file(folder.path().join("dashboard.key")).unwrap();
        assert!(!roles.makes_operator(&role_of(&next)));
    }
}
