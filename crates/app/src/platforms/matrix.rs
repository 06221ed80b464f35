//! Matrix, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_chat::AdapterState;
use hermetic_config::{Config, MatrixAccount, MatrixCredentials, MatrixEncryption, StrangerPolicy};
use hermetic_gateway::StoredAdapterState;
use hermetic_matrix::{
    DeviceTrust, EncryptionMode, HomeserverCredentials, InviteRule, KeptDevice, MatrixAdapter,
    MatrixConfig, MatrixConfigError, MatrixHearing,
};
use hermetic_store::Store;
use hermetic_types::{AccountId, AccountName, ChatId, Platform, UserId};
use regex::Regex;

use super::{AdapterSurroundings, ChatAccount, PlatformSetup, SetupValue};
use crate::AppFailure;

/// How a first account is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Matrix,
    title: "Matrix",
    guide: "docs/guides/matrix.md",
    values: &[
        SetupValue {
            variable: "MATRIX_HOMESERVER",
            what: "the address of the account's homeserver, as in https://matrix.example.org",
            is_secret: false,
            instead: &[],
        },
        SetupValue {
            variable: "MATRIX_ACCESS_TOKEN",
            what: "the account's access token; in Element under Settings, Help & About",
            is_secret: true,
            instead: &["MATRIX_USER_ID", "MATRIX_PASSWORD"],
        },
    ],
    fixed: &[],
    allowlist: "MATRIX_ALLOWED_USERS",
    person: "matrix ids, such as @alice:example.org; your own stands under your name in Element",
};

/// Every account that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().matrix;
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
    account: &MatrixAccount,
) -> Result<ChatAccount, AppFailure> {
    let settings = &config.platforms().matrix;
    let id = AccountId::new(Platform::Matrix, name.clone());
    let credentials = match &account.credentials {
        MatrixCredentials::Token { token, user } => HomeserverCredentials::Token {
            token: token.clone(),
            user: user.clone(),
        },
        MatrixCredentials::Password { user, password } => HomeserverCredentials::Password {
            user: user.clone(),
            password: password.clone(),
        },
    };
    let mut wanted = MatrixConfig::new(
        &account.homeserver,
        credentials,
        around.state(&id),
        around.clock(),
    );
    wanted.account = id.clone();
    wanted.device.clone_from(&account.device);
    wanted.proxy = super::own_proxy(config, account.proxy.as_deref())?;
    wanted.hearing = hearing(config).map_err(|failure| failure.during(id.clone()))?;
    wanted.invites = invites(config);
    wanted.message_bytes = settings.max_message_length;
    wanted.media_bytes = settings.max_media_bytes;
    wanted.encryption = match settings.encryption {
        MatrixEncryption::Off => EncryptionMode::Off,
        MatrixEncryption::Optional => EncryptionMode::Optional,
        MatrixEncryption::Required => EncryptionMode::Required,
    };
    if settings.signed_devices_only {
        wanted.trust = DeviceTrust::CrossSigned;
    }
    let matrix = MatrixAdapter::new(wanted).map_err(|error| {
        let remedy = match error {
            MatrixConfigError::NoEncryption => {
                "build it with `--features matrix-e2ee`, or write MATRIX_E2EE_MODE=off to use rooms \
                 without encryption"
            }
            _ => {
                "look at MATRIX_HOMESERVER, MATRIX_ACCESS_TOKEN, MATRIX_USER_ID, proxy and accounts of \
                 matrix"
            }
        };
        AppFailure::caused(&error, remedy).during(id)
    })?;
    Ok(ChatAccount {
        chat: Arc::new(matrix),
        listen: None,
    })
}

/// What is known of the device of a Matrix account in encrypted rooms.
#[derive(Clone, Debug)]
pub struct MatrixDevice {
    pub account: AccountId,
    /// `None` until it was connected with encryption.
    pub device: Option<KeptDevice>,
}

/// Whether this build speaks encrypted rooms, and the devices by which people know us there.
pub async fn matrix_devices(
    config: &Config,
    store: &Store,
) -> Result<(bool, Vec<MatrixDevice>), AppFailure> {
    let mut devices = Vec::new();
    for name in config.platforms().matrix.accounts.keys() {
        let account = AccountId::new(Platform::Matrix, name.clone());
        let state = StoredAdapterState::new(store, &account);
        let state: Arc<dyn AdapterState> = Arc::new(state);
        let device = hermetic_matrix::kept_device(&state).await;
        let device = device.map_err(|error| {
            AppFailure::caused(&error, "look at the store: hermetic doctor").during(account.clone())
        })?;
        devices.push(MatrixDevice { account, device });
    }
    Ok((hermetic_matrix::SPEAKS_ENCRYPTION, devices))
}

/// What in a room is meant for us, the same for every account.
fn hearing(config: &Config) -> Result<MatrixHearing, AppFailure> {
    let settings = &config.platforms().matrix;
    let patterns = settings.ignore_user_patterns.iter();
    let ignored = patterns.map(|pattern| {
        Regex::new(pattern)
            .map_err(|error| AppFailure::caused(&error, "look at MATRIX_IGNORE_USER_PATTERNS"))
    });
    Ok(MatrixHearing {
        require_mention: settings.require_mention,
        thread_require_mention: settings.thread_require_mention,
        free_response_rooms: rooms(&settings.free_response_rooms),
        allowed_rooms: rooms(&settings.allowed_rooms),
        auto_thread: settings.auto_thread,
        dm_auto_thread: settings.dm_auto_thread,
        notices: settings.process_notices,
        ignored_users: ignored.collect::<Result<_, _>>()?,
    })
}

/// Who may write may invite. Where strangers are offered a code, they may ask for it in private.
fn invites(config: &Config) -> InviteRule {
    let platforms = config.platforms();
    let section = &platforms.matrix.platform;
    let lists = [
        &section.allowed_users,
        &section.admins,
        &section.group_admins,
        &platforms.allowed_users,
    ];
    let listed: Vec<_> = lists.into_iter().flatten().collect();
    let approvers = config.approvals().approvers.iter();
    let approvers = approvers.filter_map(|approver| {
        let (account, user) = approver.split_once(':')?;
        let account = account.parse::<AccountId>().ok()?;
        (account.platform() == Platform::Matrix).then(|| user.to_owned())
    });
    let named = listed.iter().map(|user| (*user).clone()).chain(approvers);
    let named = named.filter(|user| user.starts_with('@'));
    let has_list = !section.allowed_users.is_empty() || !platforms.allowed_users.is_empty();
    let spelled_out = crate::access::unauthorized_dm(config, section).is_some();
    InviteRule {
        from_anybody: section.allow_all_users
            || platforms.allow_all_users
            || listed.iter().any(|user| *user == "*"),
        from: named
            .filter_map(|user| UserId::new(user.trim()).ok())
            .collect(),
        pairing: section.stranger == StrangerPolicy::Pair && (spelled_out || !has_list),
    }
}

fn rooms(listed: &[String]) -> BTreeSet<ChatId> {
    let ids = listed.iter().map(|id| ChatId::new(id.trim()));
    ids.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platforms::tests::config;

    const ONE: &str = "matrix: {homeserver: 'https://a.example', access_token: t";

    #[test]
    fn each_account_has_its_homeserver_and_a_token_or_a_password() {
        let config = config(&format!(
            "{ONE}, accounts: {{work: {{user_id: '@bot:b.example', password: p, homeserver: \
             'https://b.example'}}, other: {{access_token: u}}}}}}\n"
        ));
        let accounts = accounts(&config, &AdapterSurroundings::of_onlooker()).unwrap();
        let names: Vec<_> = accounts
            .iter()
            .map(|account| account.chat.account().to_string())
            .collect();
        assert_eq!(names, ["matrix", "matrix/other", "matrix/work"]);
    }

    #[test]
    fn what_is_no_address_or_no_pattern_is_refused() {
        for (text, says) in [
            (
                "matrix: {homeserver: example.org, access_token: t}\n".to_owned(),
                "https://matrix.example.org",
            ),
            (
                format!("{ONE}, ignore_user_patterns: ['(']}}\n"),
                "regex parse error",
            ),
        ] {
            let failure = accounts(&config(&text), &AdapterSurroundings::of_onlooker())
                .unwrap_err()
                .to_string();
            assert!(failure.contains(says), "{failure}");
        }
    }

    #[test]
    fn who_requires_encryption_is_not_spoken_to_in_plain() {
        let text = format!("{ONE}, e2ee_mode: required}}\n");
        let opened = accounts(&config(&text), &AdapterSurroundings::of_onlooker());
        assert_eq!(opened.is_ok(), hermetic_matrix::SPEAKS_ENCRYPTION);
        if let Err(failure) = opened {
            let failure = failure.to_string();
            assert!(failure.contains("does not speak"), "{failure}");
        }
    }

    #[test]
    fn who_may_write_may_invite_and_strangers_only_where_they_get_a_code() {
        let rule = |rest: &str| invites(&config(&format!("{ONE}}}\n{rest}")));
        let nobody = rule("");
        assert!(nobody.pairing && !nobody.from_anybody && nobody.from.is_empty());
        let listed = rule(
            "GATEWAY_ALLOWED_USERS: '@a:b,4711'\napprovals: {approvers: ['matrix:@c:d', 'telegram:7']}\n",
        );
        let from: Vec<_> = listed.from.iter().map(UserId::as_str).collect();
        assert_eq!(from, ["@a:b", "@c:d"]);
        assert!(!listed.pairing && !listed.from_anybody);
        assert!(rule("GATEWAY_ALLOW_ALL_USERS: true\n").from_anybody);
    }

    #[test]
    fn the_scope_of_a_session_is_room_or_thread() {
        for (scope, threads) in [("auto", true), ("room", false), ("thread", true)] {
            let config = config(&format!("{ONE}, session_scope: {scope}}}\n"));
            assert_eq!(hearing(&config).unwrap().auto_thread, threads, "{scope}");
        }
    }
}
