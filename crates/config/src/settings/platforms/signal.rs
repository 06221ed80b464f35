//! Signal.

use std::collections::BTreeMap;

use hermetic_types::AccountName;

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;

#[derive(Clone, Debug)]
pub struct SignalPlatform {
    pub platform: PlatformConfig,
    /// Every number by its name; the platform's own is called `default`.
    pub accounts: BTreeMap<AccountName, SignalAccount>,
    /// `group_allowed_users` holds groups, as it does for Hermes: these.
    pub groups: Vec<String>,
    /// Or all of them.
    pub all_groups: bool,
    /// And people, who may write in any.
    pub group_allowed_users: Vec<String>,
    pub require_mention: bool,
}

/// One number, and the daemon that runs as it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalAccount {
    pub number: String,
    pub http_url: String,
}

pub(super) fn signal(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> SignalPlatform {
    let accounts = accounts(at, problems);
    let has = |key: &str| at.maybe_text(key).is_some() || !accounts.is_empty();
    let needed = [("http_url", has("http_url")), ("account", has("account"))];
    let platform = at.platform(&needed, problems);
    let listed = at.texts("group_allowed_users");
    // Groups are written in base64 of whole words, so they end in a sign that no person's name has.
    let (groups, people) = listed
        .iter()
        .cloned()
        .partition(|entry| entry.ends_with('='));
    let mut people: Vec<String> = people;
    let all_groups = people.iter().any(|entry| entry == "*");
    people.retain(|entry| entry != "*");
    SignalPlatform {
        platform,
        accounts,
        groups,
        all_groups,
        group_allowed_users: people,
        require_mention: at.flag("require_mention"),
    }
}

fn accounts(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, SignalAccount> {
    let mut accounts = BTreeMap::new();
    let shared = at.maybe_text("http_url");
    let own = at.maybe_text("account").zip(shared.clone());
    accounts.extend(own.map(|(number, http_url)| {
        let number = with_plus(number);
        (AccountName::default(), SignalAccount { number, http_url })
    }));
    for (name, record) in at.pick.table(&at.path("accounts")) {
        let number = field(record, "account").map(with_plus);
        let http_url = field(record, "http_url").or_else(|| shared.clone());
        let account = number
            .zip(http_url)
            .map(|(number, http_url)| SignalAccount { number, http_url });
        match (name.parse::<AccountName>(), account) {
            (Err(error), _) => problems.push(at.wrong("accounts", error.to_string())),
            (Ok(_), None) => problems.push(
                at.wrong("accounts", format!("{name} has no address"))
                    .help("write http_url for it, or for all of them beside `accounts`"),
            ),
            // Both would be handed every message, and answer twice.
            (Ok(name), Some(account))
                if accounts.contains_key(&name)
                    || accounts
                        .values()
                        .any(|other| other.number == account.number) =>
            {
                problems.push(
                    at.wrong("accounts", format!("{} is there twice", name.as_str()))
                        .help("`account` beside `accounts` is the one called default"),
                );
            }
            (Ok(name), Some(account)) => {
                accounts.insert(name, account);
            }
        }
    }
    accounts
}

/// A number that is written without quotes is read as one, and loses its plus.
fn with_plus(number: String) -> String {
    match number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("+{number}"),
        false => number,
    }
}
