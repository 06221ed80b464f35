//! Matrix.

use std::collections::BTreeMap;

use hermetic_types::{AccountName, Secret};

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};

#[derive(Clone, Debug)]
pub struct MatrixPlatform {
    pub platform: PlatformConfig,
    /// Every account by its name; the platform's own is called `default`.
    pub accounts: BTreeMap<AccountName, MatrixAccount>,
    pub require_mention: bool,
    pub thread_require_mention: bool,
    pub free_response_rooms: Vec<String>,
    pub allowed_rooms: Vec<String>,
    /// What is said in a room is answered in a thread.
    pub auto_thread: bool,
    pub dm_auto_thread: bool,
    pub process_notices: bool,
    /// Regular expressions.
    pub ignore_user_patterns: Vec<String>,
    pub max_message_length: usize,
    pub max_media_bytes: u64,
    pub encryption: MatrixEncryption,
    /// Only devices that their owner signed are heard in encrypted rooms.
    pub signed_devices_only: bool,
}

/// Which rooms are spoken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixEncryption {
    Off,
    Optional,
    Required,
}

#[derive(Clone, Debug)]
pub struct MatrixAccount {
    pub homeserver: String,
    pub credentials: MatrixCredentials,
    pub device: Option<String>,
    pub proxy: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatrixCredentials {
    Token { token: Secret, user: Option<String> },
    Password { user: String, password: Secret },
}

pub(super) fn matrix(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> MatrixPlatform {
    let accounts = accounts(at, problems);
    let own = credentials(
        at.secret("access_token"),
        at.maybe_text("user_id"),
        at.secret("password"),
    );
    let has = |there: bool| there || !accounts.is_empty();
    let needed = [
        ("homeserver", has(at.maybe_text("homeserver").is_some())),
        ("access_token", has(own.is_some())),
    ];
    let platform = at.platform(&needed, problems);
    MatrixPlatform {
        platform,
        encryption: match at.maybe_text("e2ee_mode").as_deref() {
            Some("required") => MatrixEncryption::Required,
            Some("optional") => MatrixEncryption::Optional,
            None if at.flag("encryption") => MatrixEncryption::Optional,
            _ => MatrixEncryption::Off,
        },
        signed_devices_only: at.text("e2ee_trust") == "cross_signed",
        require_mention: at.flag("require_mention"),
        thread_require_mention: at.flag("thread_require_mention"),
        free_response_rooms: at.texts("free_response_rooms"),
        allowed_rooms: at.texts("allowed_rooms"),
        auto_thread: match at.text("session_scope").as_str() {
            "room" => false,
            "thread" => true,
            _ => at.flag("auto_thread"),
        },
        dm_auto_thread: at.flag("dm_auto_thread"),
        process_notices: at.flag("process_notices"),
        ignore_user_patterns: at.texts("ignore_user_patterns"),
        max_message_length: at.pick.count(&at.path("max_message_length")),
        max_media_bytes: at.pick.bytes(&at.path("max_media_bytes")),
        accounts,
    }
}

fn accounts(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, MatrixAccount> {
    let mut accounts = BTreeMap::new();
    let own = credentials(
        at.secret("access_token"),
        at.maybe_text("user_id"),
        at.secret("password"),
    );
    let own = own.zip(at.maybe_text("homeserver"));
    accounts.extend(own.map(|(credentials, homeserver)| {
        let account = MatrixAccount {
            homeserver,
            credentials,
            device: at.maybe_text("device_id"),
            proxy: at.maybe_text("proxy"),
        };
        (AccountName::default(), account)
    }));
    for (name, record) in at.pick.table(&at.path("accounts")) {
        match (name.parse::<AccountName>(), account(at, record)) {
            (Err(error), _) => problems.push(at.wrong("accounts", error.to_string())),
            (Ok(_), None) => problems.push(
                at.wrong(
                    "accounts",
                    format!("{name} has no homeserver or no credentials"),
                )
                .help("write homeserver and access_token, or user_id and password"),
            ),
            // Both would be told everything, and answer twice.
            (Ok(name), Some(account))
                if accounts.contains_key(&name)
                    || accounts.values().any(|other| is_same(other, &account)) =>
            {
                problems.push(
                    at.wrong("accounts", format!("{} is there twice", name.as_str()))
                        .help("what stands beside `accounts` is the one called default"),
                );
            }
            (Ok(name), Some(account)) => {
                accounts.insert(name, account);
            }
        }
    }
    accounts
}

fn account(at: &PlatformSection<'_>, record: &RecordValue) -> Option<MatrixAccount> {
    let secret = |name: &str| match record.get(name) {
        Some(SettingValue::Secret(secret)) => Some(secret.clone()),
        _ => None,
    };
    Some(MatrixAccount {
        homeserver: field(record, "homeserver").or_else(|| at.maybe_text("homeserver"))?,
        credentials: credentials(
            secret("access_token"),
            field(record, "user_id"),
            secret("password"),
        )?,
        device: field(record, "device_id"),
        proxy: field(record, "proxy").or_else(|| at.maybe_text("proxy")),
    })
}

/// A token is taken before a password.
fn credentials(
    token: Option<Secret>,
    user: Option<String>,
    password: Option<Secret>,
) -> Option<MatrixCredentials> {
    match (token, user, password) {
        (Some(token), user, _) => Some(MatrixCredentials::Token { token, user }),
        (None, Some(user), Some(password)) => Some(MatrixCredentials::Password { user, password }),
        _ => None,
    }
}

fn is_same(one: &MatrixAccount, other: &MatrixAccount) -> bool {
    use MatrixCredentials::{Password, Token};
    let is_same = match (&one.credentials, &other.credentials) {
        (Token { token: one, .. }, Token { token: other, .. }) => one == other,
        (Password { user: one, .. }, Password { user: other, .. }) => one == other,
        _ => false,
    };
    is_same && one.homeserver == other.homeserver
}
