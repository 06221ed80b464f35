//! Who may speak, from the configuration.

mod approvers;
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
use hermetic_types::{ChatId, Platform, RoleId, UserId};
use tracing::warn;

use self::approvers::{counted_lists, named_for, operators};

pub(crate) use self::approvers::{approvers, warn_of_approvers};

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
