//! Signal, from the configuration.

use std::sync::Arc;

use hermetic_config::{Config, SignalAccount};
use hermetic_signal::{DaemonEndpoint, HeardGroups, SignalAdapter, SignalConfig, SignalHearing};
use hermetic_types::{AccountId, AccountName, ChatId, Platform, UserId};

use super::{AdapterSurroundings, ChatAccount, PlatformSetup, SetupValue};
use crate::AppFailure;

/// How a first account is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Signal,
    title: "Signal",
    guide: "docs/guides/signal.md",
    values: &[
        SetupValue {
            variable: "SIGNAL_HTTP_URL",
            what: "the address of signal-cli's daemon: http://127.0.0.1:8080 or unix:///path",
            is_secret: false,
            instead: &[],
        },
        SetupValue {
            variable: "SIGNAL_ACCOUNT",
            what: "the number that signal-cli is linked or registered with, as in +4915112345678",
            is_secret: false,
            instead: &[],
        },
    ],
    fixed: &[],
    allowlist: "SIGNAL_ALLOWED_USERS",
    person: "numbers with their country, such as +4915112345678, or ids; your own for Note to Self",
};

/// Every account that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().signal;
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
    account: &SignalAccount,
) -> Result<ChatAccount, AppFailure> {
    let id = AccountId::new(Platform::Signal, name.clone());
    let wrong = |error: hermetic_signal::SignalConfigError| {
        let remedy = "look at SIGNAL_HTTP_URL, SIGNAL_ACCOUNT and accounts of signal";
        AppFailure::caused(&error, remedy).during(id.clone())
    };
    let endpoint: DaemonEndpoint = account.http_url.parse().map_err(wrong)?;
    let mut wanted =
        SignalConfig::new(&account.number, endpoint, around.state(&id), around.clock());
    wanted.account = id.clone();
    wanted.listed = listed(config);
    wanted.hearing = hearing(config);
    let signal = SignalAdapter::new(wanted).map_err(wrong)?;
    Ok(ChatAccount {
        chat: Arc::new(signal),
        listen: None,
    })
}

/// Everybody who is written down somewhere. Who may approve comes first: somebody who is listed under two
/// names goes by the first.
fn listed(config: &Config) -> Vec<UserId> {
    let platforms = config.platforms();
    let settings = &platforms.signal;
    let approvers = config.approvals().approvers.iter();
    let approvers = approvers.filter_map(|approver| match approver.split_once(':') {
        Some((on, user)) => is_signal(on).then_some(user),
        None => Some(approver.as_str()).filter(|user| is_signals_own(user)),
    });
    let own = [
        &settings.platform.admins,
        &settings.platform.group_admins,
        &settings.platform.allowed_users,
        &settings.group_allowed_users,
    ];
    let own = own.into_iter().flatten().map(String::as_str);
    let shared = platforms.allowed_users.iter().map(String::as_str);
    approvers
        .chain(own)
        .chain(shared.filter(|user| is_signals_own(user)))
        .filter_map(|user| UserId::new(user.trim()).ok())
        .collect()
}

fn is_signal(account: &str) -> bool {
    let account = account.parse::<AccountId>();
    account.is_ok_and(|account| account.platform() == Platform::Signal)
}

/// Whether somebody who is listed for every platform can be meant here. Digits alone are another
/// platform's id, and must not be looked for among Signal's numbers.
fn is_signals_own(user: &str) -> bool {
    user.starts_with('+') || user.contains('-')
}

/// What in a group is meant for us, the same for every account.
fn hearing(config: &Config) -> SignalHearing {
    let settings = &config.platforms().signal;
    let ids = settings.groups.iter().filter_map(|id| ChatId::new(id).ok());
    // People who may write in groups may do so in all of them.
    let all = settings.all_groups || !settings.group_allowed_users.is_empty();
    SignalHearing {
        require_mention: settings.require_mention,
        groups: match (all, settings.groups.is_empty()) {
            (true, _) => HeardGroups::All,
            (false, true) => HeardGroups::None,
            (false, false) => HeardGroups::Listed(ids.collect()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hermetic_config::{ConfigInputs, HomeFolder, load};

    use super::*;
    use crate::platforms::AdapterSurroundings;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.yaml"), text).unwrap();
        let loaded = load(&ConfigInputs {
            home: HomeFolder::at(folder.path()),
            managed: folder.path().join("managed.yaml"),
            variables: BTreeMap::new(),
            unreadable: Vec::new(),
        });
        loaded.unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn each_number_is_an_account_also_without_its_plus() {
        let config = config(
            "signal:\n  http_url: unix:///run/signal-cli/socket\n  account: 4915100000001\n  accounts: {work: \
             {account: '+4915100000002', http_url: 'http://127.0.0.1:8080'}}\n",
        );
        let accounts = accounts(&config, &AdapterSurroundings::of_onlooker()).unwrap();
        let names: Vec<_> = accounts
            .iter()
            .map(|account| account.chat.account().to_string())
            .collect();
        assert_eq!(names, ["signal", "signal/work"]);
        let numbers = config.platforms().signal.accounts.values();
        let numbers: Vec<_> = numbers.map(|account| account.number.as_str()).collect();
        assert_eq!(numbers, ["+4915100000001", "+4915100000002"]);
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let config = config("signal: {http_url: 'localhost:8080', account: '+4915100000001'}\n");
        let failure = accounts(&config, &AdapterSurroundings::of_onlooker())
            .unwrap_err()
            .to_string();
        assert!(failure.contains("http://host:port"), "{failure}");
    }

    #[test]
    fn only_people_of_signal_are_looked_for_there() {
        let config = config(
            "signal: {http_url: 'http://a', account: '+4915100000001', allowed_users: [4915100000003]}\n\
             approvals: {approvers: ['telegram:4711000', '4711001', 'signal:+4915100000004', '+4915100000005']}\n\
             GATEWAY_ALLOWED_USERS: '4711002'\n",
        );
        let listed = listed(&config)
            .into_iter()
            .map(|user| user.as_str().to_owned());
        assert_eq!(
            listed.collect::<Vec<_>>(),
            ["+4915100000004", "+4915100000005", "4915100000003"]
        );
    }

    #[test]
    fn groups_are_those_that_are_listed_and_people_are_no_groups() {
        let groups = |listed: &str| {
            let config = config(&format!("signal: {{group_allowed_users: [{listed}]}}\n"));
            let people = config.platforms().signal.group_allowed_users.clone();
            (hearing(&config).groups, people)
        };
        assert_eq!(groups(""), (HeardGroups::None, vec![]));
        assert_eq!(groups("'*'"), (HeardGroups::All, vec![]));
        let group = ChatId::new("YWJj+/8=").unwrap();
        assert_eq!(
            groups("'YWJj+/8='"),
            (HeardGroups::Listed([group].into()), vec![])
        );
        let alice = "+4915100000003";
        assert_eq!(
            groups(&format!("'{alice}'")),
            (HeardGroups::All, vec![alice.to_owned()])
        );
    }
}
