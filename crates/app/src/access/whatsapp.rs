//! Who may speak on WhatsApp, which has two sections in the configuration.

use hermetic_access::{PlatformSettings, UnauthorizedDm, UserAllowlist};
use hermetic_config::Config;
use hermetic_types::{AccountId, Platform};
use tracing::warn;

#[cfg(feature = "whatsapp")]
use super::approvers::{CountedLists, is_on, operators};
use super::{named_on, sections, unauthorized_dm, users};

/// By a business number, by a bridge or by both: people are the same, and so are their lists.
pub(super) fn settings(config: &Config) -> PlatformSettings {
    let sections: Vec<_> = sections(config, Platform::Whatsapp).collect();
    let listed = sections.iter().flat_map(|section| &section.allowed_users);
    let in_groups = &config.platforms().whatsapp.group_allowed_users;
    let everybody = |section: &&hermetic_config::PlatformConfig| section.allow_all_users;
    PlatformSettings {
        allowed_users: listed_people(listed),
        group_allowed_users: listed_people(in_groups),
        // Where one way is for everybody and the other is not, neither is.
        // `all` is true of no section at all as well.
        allow_all: !sections.is_empty() && sections.iter().all(everybody),
        operators: operators(config, Platform::Whatsapp, CountedLists::Own),
        unauthorized_dm: sections
            .iter()
            .find_map(|section| unauthorized_dm(config, section))
            .or_else(|| dm_policy(config)),
        ..PlatformSettings::default()
    }
}

/// What the bridge's `dm_policy` says of strangers, where it is written.
fn dm_policy(config: &Config) -> Option<UnauthorizedDm> {
    let origin = config.origin("platforms.whatsapp.dm_policy")?;
    let is_written = *origin != hermetic_config::SettingOrigin::Default;
    match config.platforms().whatsapp.dm_policy.as_str() {
        "pairing" if is_written => Some(UnauthorizedDm::Pair),
        "allowlist" => Some(UnauthorizedDm::Ignore),
        _ => None,
    }
}

/// As whatever each entry names, however a number is written.
fn listed_people<'a>(listed: impl IntoIterator<Item = &'a String>) -> UserAllowlist {
    let named = listed.into_iter().filter_map(|entry| {
        let person = named_on(Platform::Whatsapp, entry).map(|person| person.to_string());
        let person = person.or_else(|| (entry == "*").then(|| entry.clone()));
        if person.is_none() {
            warn!(
                entry,
                "lets nobody in: WhatsApp's users are listed by their number with its country code, or by \
                 the id that /whoami tells them"
            );
        }
        person
    });
    users(&named.collect::<Vec<_>>())
}

/// The accounts at WhatsApp that are in use: the first business number is the platform's own.
pub(super) fn accounts(config: &Config) -> Vec<AccountId> {
    let platforms = config.platforms();
    let cloud = &platforms.whatsapp_cloud;
    let numbers = cloud.numbers.keys().filter(|_| cloud.platform.enabled);
    let numbers = numbers.map(|name| AccountId::new(Platform::Whatsapp, name.clone()));
    let bridge = platforms.whatsapp.platform.enabled;
    let bridge = bridge.then(bridge_account);
    numbers.chain(bridge).collect()
}

/// The account behind a bridge.
pub(crate) fn bridge_account() -> AccountId {
    let name = "bridge".parse().expect("a name of an account");
    AccountId::new(Platform::Whatsapp, name)
}

/// Every entry of a list that somebody here could be meant by.
#[cfg(feature = "whatsapp")]
pub(crate) fn listed(config: &Config) -> Vec<String> {
    let sections = sections(config, Platform::Whatsapp).flat_map(|section| {
        let lists = [
            &section.allowed_users,
            &section.admins,
            &section.group_admins,
        ];
        lists.into_iter().flatten()
    });
    let in_groups = &config.platforms().whatsapp.group_allowed_users;
    let everywhere = &config.platforms().allowed_users;
    let approvers = config.approvals().approvers.iter();
    let approvers = approvers.filter_map(|approver| match approver.split_once(':') {
        Some((where_to, user)) => is_on(where_to, Platform::Whatsapp.name()).then_some(user),
        None => Some(approver.as_str()),
    });
    let lists = sections.chain(in_groups).chain(everywhere);
    lists
        .map(String::as_str)
        .chain(approvers)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
#[cfg(feature = "whatsapp")]
mod tests {
    use std::collections::BTreeMap;

    use hermetic_config::{ConfigInputs, HomeFolder, load};

    use super::*;
    use crate::access::approvers;

    fn config(more: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "whatsapp_cloud:\n  phone_number_id: '1065'\n  access_token: EAA-a-token-of-some-length\n  \
             app_secret: a-secret-of-some-length\n  allowed_users: ['+49 170 1234567', US.13491, Alice]\n{more}"
        );
        std::fs::write(folder.path().join("config.yaml"), text).unwrap();
        let loaded = load(&ConfigInputs {
            home: HomeFolder::at(folder.path()),
            managed: folder.path().join("managed.yaml"),
            variables: BTreeMap::from([(
                "GATEWAY_ALLOWED_USERS".to_owned(),
                "123456789".to_owned(),
            )]),
            unreadable: Vec::new(),
        });
        loaded.unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn numbers_and_ids_are_let_in_and_names_are_not() {
        let users = settings(&config("")).allowed_users;
        let named = |user: &str| users.names(&user.to_owned().try_into().unwrap());
        assert!(named("491701234567") && named("US.13491"));
        assert!(!named("Alice") && !named("+49 170 1234567"));
    }

    #[test]
    fn nobody_is_asked_by_a_number_that_is_listed_for_another_platform() {
        let asked = |more: &str| -> Vec<String> {
            let asked = approvers(&config(more)).into_iter();
            asked
                .map(|(account, user)| format!("{account}:{user}"))
                .collect()
        };
        let by_list = ["whatsapp:491701234567", "whatsapp:US.13491"];
        assert_eq!(asked(""), by_list);
        let written = "approvals: {approvers: ['whatsapp:+49 (151) 1', '42', 'telegram:77777']}\n";
        assert_eq!(asked(written), ["whatsapp:491511"]);
    }

    #[test]
    fn a_backend_of_its_own_is_the_platforms() {
        let config = config("  terminal_backend: docker\n");
        let own = config.platforms().enabled().next().unwrap();
        assert_eq!(own.kind(), Some(Platform::Whatsapp));
    }
}
