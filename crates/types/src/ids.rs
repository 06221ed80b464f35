//! Names of things that outlive a process.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::{AccountId, Platform};

/// One `$HERMES_HOME`. Two installations on one machine never touch each other's sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstallationId(String);

/// One gateway among those that share a store.
///
/// An installation has one today. Its rows carry the name all the same, so that a second one would not
/// take up the first one's work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GatewayId(String);

/// One sandbox, for as long as the ledger speaks of it.
///
/// Lower-case letters, digits and dashes only, so that it can be a folder, a cgroup, a container
/// name and a label without quoting.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// One command inside a sandbox, known by this name across a restart of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// One conversation, as in `agent:main:telegram:dm:4711`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConversationKey(String);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not an id: expected 1 to 63 of a-z, 0-9 and '-'")]
pub struct InvalidId {
    text: String,
}

impl InstallationId {
    pub fn random() -> Self {
        Self(hex(12))
    }
}

impl GatewayId {
    /// The only gateway of an installation.
    pub fn sole() -> Self {
        Self("gateway".to_owned())
    }
}

impl SandboxId {
    pub fn random() -> Self {
        Self(hex(16))
    }
}

impl RunId {
    pub fn random() -> Self {
        Self(hex(12))
    }
}

impl ConversationKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where people have it: the third part of every key that names an account.
    pub fn platform(&self) -> Option<Platform> {
        let account: AccountId = self.0.split(':').nth(2)?.parse().ok()?;
        Some(account.platform())
    }
}

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! checked_id {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                checked(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_id!(InstallationId);
checked_id!(GatewayId);
checked_id!(SandboxId);
checked_id!(RunId);

fn checked(text: &str) -> Result<String, InvalidId> {
    let fits = (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-');
    if fits {
        Ok(text.to_owned())
    } else {
        Err(InvalidId {
            text: text.to_owned(),
        })
    }
}

fn hex(digits: usize) -> String {
    let mut text = Uuid::new_v4().simple().to_string();
    text.truncate(digits);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_walk_out_of_a_folder() {
        for text in ["..", "a/b", "", "A", "-rf", "a b", "a\0", &"x".repeat(64)] {
            assert!(text.parse::<SandboxId>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn random_ids_are_valid_and_differ() {
        let (one, two) = (SandboxId::random(), SandboxId::random());
        assert_ne!(one, two);
        assert_eq!(one.as_str().parse(), Ok(one));
    }
}
