//! The chat platforms of this build, from the configuration.
//!
//! Each stands behind a feature, so that a build can leave it out; then the configuration is told that
//! this build does not speak it. Nothing but this folder knows which platforms exist.

mod browser;
mod check;
#[cfg(feature = "discord")]
mod discord;
mod listeners;
#[cfg(feature = "matrix")]
mod matrix;
mod setup;
#[cfg(feature = "signal")]
mod signal;
#[cfg(feature = "slack")]
mod slack;
#[cfg(feature = "telegram")]
mod telegram;
#[cfg(feature = "webhook")]
mod webhook;
#[cfg(feature = "whatsapp")]
mod whatsapp;

use std::sync::Arc;

use hermetic_chat::{AdapterState, Chat, InMemoryState};
use hermetic_config::Config;
use hermetic_types::{AccountId, Platform, Secret, SharedClock, SystemClock};
use hermetic_upstream::UpstreamProxy;

use crate::AppFailure;

pub(crate) use browser::{browser_account, browser_chat};
pub use check::check_accounts;
pub(crate) use listeners::listen;
#[cfg(feature = "matrix")]
pub use matrix::{MatrixDevice, matrix_devices};
pub use setup::{PlatformSetup, SetupValue, setups};
#[cfg(feature = "whatsapp")]
pub(crate) use whatsapp::person as whatsapp_person;

/// Reads a platform's accounts.
type ReadAccounts = fn(&Config, &AdapterSurroundings<'_>) -> Result<Vec<ChatAccount>, AppFailure>;

/// What an adapter is handed when it is made, whatever its platform.
pub(crate) struct AdapterSurroundings<'a> {
    pub(crate) clock: SharedClock,
    pub(crate) states: &'a AdapterStates<'a>,
}

/// Gives an account the place where its adapter remembers things.
pub(crate) type AdapterStates<'a> = dyn Fn(&AccountId) -> Arc<dyn AdapterState> + Sync + 'a;

impl AdapterSurroundings<'_> {
    /// For accounts that are made to be looked at, and never receive anything.
    pub(crate) fn of_onlooker() -> Self {
        Self {
            clock: SystemClock::shared(),
            states: &forgetful,
        }
    }

    pub(crate) fn state(&self, account: &AccountId) -> Arc<dyn AdapterState> {
        (self.states)(account)
    }

    pub(crate) fn clock(&self) -> SharedClock {
        Arc::clone(&self.clock)
    }
}

fn forgetful(_: &AccountId) -> Arc<dyn AdapterState> {
    Arc::new(InMemoryState::default())
}

/// The proxy of an account: its own where one is written, else the gateway's.
#[cfg(any(
    feature = "discord",
    feature = "matrix",
    feature = "slack",
    feature = "telegram"
))]
fn own_proxy(config: &Config, written: Option<&str>) -> Result<Option<UpstreamProxy>, AppFailure> {
    let Some(written) = written else {
        return Ok(config.gateway().proxy.clone());
    };
    let proxy = UpstreamProxy::parse(written).map_err(|error| {
        AppFailure::caused(&error, "write `proxy` of the platform as http://host:port")
    })?;
    Ok(Some(proxy.except(config.gateway().no_proxy.clone())))
}

/// The logins of every proxy that chats are reached through.
pub(crate) fn proxy_secrets(config: &Config) -> Vec<Secret> {
    let platforms = config.platforms();
    let written = [
        platforms
            .telegram
            .accounts
            .values()
            .filter_map(|it| it.proxy.as_deref())
            .collect::<Vec<_>>(),
        platforms
            .discord
            .accounts
            .values()
            .filter_map(|it| it.proxy.as_deref())
            .collect(),
        platforms
            .slack
            .accounts
            .values()
            .filter_map(|it| it.proxy.as_deref())
            .collect(),
        platforms
            .matrix
            .accounts
            .values()
            .filter_map(|it| it.proxy.as_deref())
            .collect(),
    ];
    let read = written
        .concat()
        .into_iter()
        .filter_map(|text| UpstreamProxy::parse(text).ok());
    let all = read.chain(config.gateway().proxy.clone());
    all.flat_map(|proxy| proxy.secrets()).collect()
}

/// A platform that this build speaks.
struct SpokenPlatform {
    platform: Platform,
    accounts: ReadAccounts,
    /// How one is set up in a conversation; `None` where a file says more.
    setup: Option<&'static PlatformSetup>,
}

/// In the order in which they are shown.
const PLATFORMS: &[SpokenPlatform] = &[
    #[cfg(feature = "telegram")]
    SpokenPlatform {
        platform: Platform::Telegram,
        accounts: telegram::accounts,
        setup: Some(&telegram::SETUP),
    },
    #[cfg(feature = "discord")]
    SpokenPlatform {
        platform: Platform::Discord,
        accounts: discord::accounts,
        setup: Some(&discord::SETUP),
    },
    #[cfg(feature = "slack")]
    SpokenPlatform {
        platform: Platform::Slack,
        accounts: slack::accounts,
        setup: Some(&slack::SETUP),
    },
    #[cfg(feature = "whatsapp")]
    SpokenPlatform {
        platform: Platform::Whatsapp,
        accounts: whatsapp::accounts,
        setup: Some(&whatsapp::SETUP),
    },
    #[cfg(feature = "signal")]
    SpokenPlatform {
        platform: Platform::Signal,
        accounts: signal::accounts,
        setup: Some(&signal::SETUP),
    },
    #[cfg(feature = "matrix")]
    SpokenPlatform {
        platform: Platform::Matrix,
        accounts: matrix::accounts,
        setup: Some(&matrix::SETUP),
    },
    #[cfg(feature = "webhook")]
    SpokenPlatform {
        platform: Platform::Webhook,
        accounts: webhook::accounts,
        setup: None,
    },
];

/// One account that is in use.
#[derive(Debug)]
pub(crate) struct ChatAccount {
    pub(crate) chat: Arc<dyn Chat>,
    /// Where it is called, if the platform calls us.
    pub(crate) listen: Option<ListenAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What is written to choose another one.
    pub(crate) setting: &'static str,
}

/// Every account as it is configured, before anything is listened to.
pub(crate) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let mut accounts = Vec::new();
    for spoken in PLATFORMS {
        let read = (spoken.accounts)(config, around);
        accounts.extend(read.map_err(AppFailure::of_client)?);
    }
    Ok(accounts)
}

/// What keeps a platform's accounts from being made, each platform's first; then whether two of them
/// would be called at one address. Nothing is listened to.
pub(crate) fn refusals(config: &Config) -> Vec<AppFailure> {
    let around = AdapterSurroundings::of_onlooker();
    let (mut accounts, mut refusals) = (Vec::new(), Vec::new());
    for spoken in PLATFORMS {
        match (spoken.accounts)(config, &around) {
            Ok(read) => accounts.extend(read),
            Err(refusal) => refusals.push(refusal.of_client()),
        }
    }
    if refusals.is_empty() {
        let dashboard = &config.gateway().dashboard;
        // Opened before all others, and also where there are no pages: health is answered there.
        let own = ListenAddress {
            host: dashboard.host.clone(),
            port: dashboard.port,
            setting: "gateway.dashboard.port",
        };
        let ports = listeners::ports(&accounts);
        refusals.extend(
            ports
                .and_then(|ports| listeners::kept_apart(&ports, &own))
                .err(),
        );
    }
    refusals
}

/// Accounts that only the gateway which listens to them can answer on.
pub(crate) fn bound_to_one_process(config: &Config) -> Vec<AccountId> {
    let around = AdapterSurroundings::of_onlooker();
    let read = PLATFORMS.iter();
    // One that cannot be made is refused elsewhere, in words.
    let accounts = read.filter_map(|spoken| (spoken.accounts)(config, &around).ok());
    let bound = accounts.flatten().map(|account| account.chat);
    let bound = bound.filter(|chat| !chat.is_portable());
    bound.map(|chat| chat.account().clone()).collect()
}

/// Whether this build speaks the platform that a section of the configuration is about.
pub fn speaks(section: &hermetic_config::PlatformConfig) -> bool {
    let mut spoken = PLATFORMS.iter();
    spoken.any(|spoken| Some(spoken.platform) == section.kind())
}

#[cfg(test)]
mod table_tests;
#[cfg(test)]
#[cfg(feature = "telegram")]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use hermetic_config::{ConfigInputs, HomeFolder, load};

    use super::*;
    use crate::access;

    const TWO_BOTS: &str = "telegram:\n  token: '1:own-token-of-the-first'\n  allowed_users: '7'\n  \
                            accounts: {work: {token: '2:another-token-of-work'}}\n";

    pub(crate) fn config(text: &str) -> Config {
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
    fn each_bot_is_an_account_and_its_token_a_secret() {
        let config = config(TWO_BOTS);
        let accounts = accounts(&config, &AdapterSurroundings::of_onlooker()).unwrap();
        let names: Vec<_> = accounts
            .iter()
            .map(|account| account.chat.account().to_string())
            .collect();
        assert_eq!(names, ["telegram", "telegram/work"]);
        let redacted = crate::redactor(&config).redact("it is 2:another-token-of-work");
        assert!(!redacted.as_str().contains("another-token"), "{redacted:?}");
    }

    #[test]
    fn an_approver_is_asked_by_the_bot_they_are_listed_with() {
        let asked = |approvers: &str| -> Vec<String> {
            let config = config(&format!(
                "{TWO_BOTS}approvals: {{approvers: [{approvers}]}}\n"
            ));
            let asked = access::approvers(&config).into_iter();
            asked
                .map(|(account, user)| format!("{account}:{user}"))
                .collect()
        };
        assert_eq!(asked(""), ["telegram:7"]);
        assert_eq!(asked("'telegram:8'"), ["telegram:8"]);
        assert_eq!(
            asked("'telegram/work:8', 9"),
            ["telegram/work:8", "telegram:9"]
        );
        assert_eq!(asked("'telegram/gone:8'"), ["telegram:8"]);
    }
}
