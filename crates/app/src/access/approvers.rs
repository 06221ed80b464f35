//! Who decides: whoever may answer questions, and by which account each of them is asked.

use std::collections::BTreeSet;

use hermetic_config::Config;
use hermetic_types::{AccountId, AccountName, Platform, UserId};
use tracing::warn;

use super::{ids, named_on, sections, whatsapp};

/// Approvers who are listed with this platform's name.
pub(super) fn named_for(config: &Config, platform: Platform) -> BTreeSet<UserId> {
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
pub(super) fn is_on(where_to: &str, platform: &str) -> bool {
    where_to.split('/').next() == Some(platform)
}

/// Names the allowlists that count for a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedLists {
    All,
    /// Those that speak of this platform and no other.
    Own,
}

/// Whether somebody who is listed without a platform counts on this one. Not where people are telephone
/// numbers: an id from elsewhere may be a stranger's.
pub(super) fn counted_lists(platform: Platform) -> CountedLists {
    match platform {
        Platform::Signal | Platform::Whatsapp => CountedLists::Own,
        _ => CountedLists::All,
    }
}

/// Admins of the platform, and who may approve there (`platform:user`). Where neither is written, the
/// people whom the operator put on an allowlist by name.
pub(super) fn operators(
    config: &Config,
    platform: Platform,
    lists: CountedLists,
) -> BTreeSet<UserId> {
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
