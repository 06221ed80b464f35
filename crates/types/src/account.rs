//! Accounts: one bot on one platform.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Platform, UnknownPlatform};

/// One bot on one platform. Two bots of one platform are two accounts.
///
/// The platform's own account is written as the platform alone (`telegram`), which is how rows and
/// conversation keys had it before there were others; another one has its name behind it
/// (`telegram/work`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountId {
    platform: Platform,
    name: Option<AccountName>,
}

/// What the operator calls an account: 1 to 32 of `a-z`, `0-9`, `-` and `_`, so that it can stand in a
/// conversation's key and in a variable without quoting.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountName(String);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidAccount {
    #[error(transparent)]
    Platform(#[from] UnknownPlatform),
    #[error("{name:?} is no name of an account: expected 1 to 32 of a-z, 0-9, '-' and '_'")]
    Name { name: String },
}

impl AccountId {
    pub fn new(platform: Platform, name: AccountName) -> Self {
        let name = Some(name).filter(|name| name.0 != AccountName::DEFAULT);
        Self { platform, name }
    }

    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Its name, which is `default` for the platform's own.
    pub fn name(&self) -> &str {
        let name = self.name.as_ref();
        name.map_or(AccountName::DEFAULT, |name| &name.0)
    }
}

impl AccountName {
    /// The name of the account that a platform has without naming any.
    pub const DEFAULT: &str = "default";
    const LONGEST: usize = 32;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AccountName {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl From<Platform> for AccountId {
    fn from(platform: Platform) -> Self {
        Self {
            platform,
            name: None,
        }
    }
}

impl FromStr for AccountName {
    type Err = InvalidAccount;

    fn from_str(text: &str) -> Result<Self, InvalidAccount> {
        let plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        let fits = (1..=Self::LONGEST).contains(&text.len()) && text.bytes().all(plain);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidAccount::Name {
                name: text.chars().take(80).collect(),
            })
        }
    }
}

impl FromStr for AccountId {
    type Err = InvalidAccount;

    fn from_str(text: &str) -> Result<Self, InvalidAccount> {
        match text.split_once('/') {
            None => Ok(text.parse::<Platform>()?.into()),
            Some((platform, name)) => Ok(Self::new(platform.parse()?, name.parse()?)),
        }
    }
}

impl TryFrom<String> for AccountId {
    type Error = InvalidAccount;

    fn try_from(text: String) -> Result<Self, InvalidAccount> {
        text.parse()
    }
}

impl From<AccountId> for String {
    fn from(account: AccountId) -> Self {
        account.to_string()
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => f.pad(self.platform.name()),
            Some(name) => f.pad(&format!("{}/{}", self.platform, name.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_account_of_a_platform_is_written_as_before() {
        let own = AccountId::from(Platform::Telegram);
        assert_eq!(
            (own.to_string().as_str(), own.name()),
            ("telegram", "default")
        );
        assert_eq!("telegram".parse(), Ok(own.clone()));
        assert_eq!("telegram/default".parse(), Ok(own));
        let work: AccountId = "telegram/work".parse().unwrap();
        assert_eq!((work.platform(), work.name()), (Platform::Telegram, "work"));
        assert_eq!(work.to_string(), "telegram/work");
    }

    #[test]
    fn a_name_cannot_be_taken_for_a_part_of_a_key() {
        for text in ["", "a:b", "a/b", "A", "a b", "é", &"x".repeat(33)] {
            let account = format!("telegram/{text}");
            assert!(account.parse::<AccountId>().is_err(), "{account:?}");
        }
        assert!("nowhere/work".parse::<AccountId>().is_err());
    }
}
