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

/// Which of the gateways that share an installation has a conversation: whoever takes it over has a higher one
/// than everybody before. Zero where nobody shares.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct HolderEpoch(u64);

/// One job that runs on a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

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

    /// One process of a gateway, which no other start has the name of.
    pub fn random() -> Self {
        Self(hex(12))
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

impl HolderEpoch {
    /// Nobody shares, or nobody said.
    pub const UNSHARED: Self = Self(0);

    pub const fn new(epoch: u64) -> Self {
        Self(epoch)
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for HolderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JobId {
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

    /// The key of what a scheduled job of this account says and does: apart from every chat, because no kind
    /// of chat is called `cron` and ids in a key are escaped.
    pub fn of_job(profile: &str, account: &AccountId, job: &JobId) -> Self {
        Self(format!("agent:{profile}:{account}:cron:{job}"))
    }

    /// The job that this is the key of, if it is one.
    pub fn job(&self) -> Option<JobId> {
        let mut parts = self.0.split(':').skip(3);
        let (kind, job) = (parts.next()?, parts.next()?);
        (kind == "cron" && parts.next().is_none())
            .then(|| job.parse().ok())
            .flatten()
    }

    /// Whether nobody is there who could be asked: a job's, and what works beside it.
    pub fn is_unattended(&self) -> bool {
        matches!(self.0.split(':').nth(3), Some("cron" | "cronwork"))
    }

    /// A key of the same account for something that works beside this conversation and is nobody's chat.
    pub fn beside(&self, work: &RunId) -> Self {
        let account: Vec<_> = self.0.split(':').take(3).collect();
        let kind = match self.is_unattended() {
            true => "cronwork",
            false => "work",
        };
        Self(format!("{}:{kind}:{work}", account.join(":")))
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
checked_id!(JobId);

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

    #[test]
    fn the_key_of_a_job_is_that_of_no_chat() {
        let (job, account) = (JobId::random(), Platform::Telegram.into());
        let key = ConversationKey::of_job("main", &account, &job);
        assert_eq!(key.job(), Some(job));
        assert_eq!(key.platform(), Some(Platform::Telegram));
        let work = key.beside(&RunId::random());
        assert!(key.is_unattended() && work.is_unattended());
        assert_eq!(
            (work.job(), work.platform()),
            (None, Some(Platform::Telegram))
        );
        let chat = ConversationKey::new("agent:main:telegram:dm:cron");
        assert!(!chat.is_unattended() && !chat.beside(&RunId::random()).is_unattended());
        for chat in [
            "agent:main:telegram:dm:cron",
            "agent:main:telegram:group:cron:abc",
            "agent:main:telegram:cron",
            "agent:main:telegram:cron:a%3A",
            "agent:main:telegram:cron:abc:7",
            "cron:abc",
        ] {
            assert_eq!(ConversationKey::new(chat).job(), None, "{chat}");
        }
    }
}
