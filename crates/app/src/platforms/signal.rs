//! Signal, from the configuration.

use std::sync::Arc;

use hermetic_config::{Config, SignalAccount};
use hermetic_signal::{Endpoint, Groups, Hearing, Signal, SignalConfig};
use hermetic_types::{AccountId, AccountName, ChatId, Platform, UserId};

use super::{AdapterStates, ChatAccount, PlatformSetup, SetupValue};
use crate::Failure;

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
        },
        SetupValue {
            variable: "SIGNAL_ACCOUNT",
            what: "the number that signal-cli is linked or registered with, as in +4915112345678",
            is_secret: false,
        },
    ],
    fixed: &[],
    allowlist: "SIGNAL_ALLOWED_USERS",
    person: "numbers with their country, such as +4915112345678, or ids; your own for Note to Self",
};

/// Every account that is in use.
pub(super) fn accounts(
    config: &Config,
    states: &AdapterStates<'_>,
) -> Result<Vec<ChatAccount>, Failure> {
    let settings = &config.platforms().signal;
    let in_use = settings.platform.enabled;
    let accounts = settings.accounts.iter().filter(|_| in_use);
    accounts
        .map(|(name, account)| open(config, states, name, account))
        .collect()
}

fn open(
    config: &Config,
    states: &AdapterStates<'_>,
    name: &AccountName,
    account: &SignalAccount,
) -> Result<ChatAccount, Failure> {
    let id = AccountId::new(Platform::Signal, name.clone());
    let wrong = |error: hermetic_signal::SignalConfigError| {
        let remedy = "look at SIGNAL_HTTP_URL, SIGNAL_ACCOUNT and accounts of signal";
        Failure::caused(&error, remedy).during(id.clone())
    };
    let endpoint: Endpoint = account.http_url.parse().map_err(wrong)?;
    let mut wanted = SignalConfig::new(&account.number, endpoint, states(&id));
    wanted.account = id.clone();
    wanted.listed = listed(config);
    wanted.hearing = hearing(config);
    let signal = Signal::new(wanted).map_err(wrong)?;
    Ok(ChatAccount {
        chat: Arc::new(signal),
        listen: None,
    })
}

/// Everybody who is written down somewhere. Who may approve comes first: somebody who is listed under two
/// names goes by the first.
fn listed(config: &Config) -> Vec<UserId> {
    let settings = &config.platforms().signal;
    let approvers = config.approvals().approvers.iter();
    let approvers = approvers.map(|approver| match approver.split_once(':') {
        Some((_, user)) => user,
        None => approver,
    });
    let others = [
        &settings.platform.admins,
        &settings.platform.group_admins,
        &settings.platform.allowed_users,
        &settings.group_allowed_users,
        &config.platforms().allowed_users,
    ];
    let others = others.into_iter().flatten().map(String::as_str);
    approvers
        .chain(others)
        .filter_map(|user| UserId::new(user.trim()).ok())
        .collect()
}

/// What in a group is meant for us, the same for every account.
fn hearing(config: &Config) -> Hearing {
    let settings = &config.platforms().signal;
    let ids = settings.groups.iter().filter_map(|id| ChatId::new(id).ok());
    // People who may write in groups may do so in all of them.
    let all = settings.all_groups || !settings.group_allowed_users.is_empty();
    Hearing {
        require_mention: settings.require_mention,
        groups: match (all, settings.groups.is_empty()) {
            (true, _) => Groups::All,
            (false, true) => Groups::None,
            (false, false) => Groups::Listed(ids.collect()),
        },
    }
}
