//! Chat platforms, and the names they give to people, chats and messages.
//!
//! Such a name is chosen by somebody else, so it is checked once, here: not empty, not long, no
//! control characters. What a platform calls it otherwise is its own business.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Telegram,
    Discord,
    Slack,
    Whatsapp,
    Signal,
    Matrix,
    Webhook,
    /// The chat in the dashboard: the platform is the gateway itself.
    Browser,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown platform {name:?}; known: {}", Platform::ALL.map(Platform::name).join(", "))]
pub struct UnknownPlatform {
    pub name: String,
}

impl Platform {
    pub const ALL: [Self; 8] = [
        Self::Telegram,
        Self::Discord,
        Self::Slack,
        Self::Whatsapp,
        Self::Signal,
        Self::Matrix,
        Self::Webhook,
        Self::Browser,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Discord => "discord",
            Self::Slack => "slack",
            Self::Whatsapp => "whatsapp",
            Self::Signal => "signal",
            Self::Matrix => "matrix",
            Self::Webhook => "webhook",
            Self::Browser => "browser",
        }
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(name: &str) -> Result<Self, UnknownPlatform> {
        Self::ALL
            .into_iter()
            .find(|platform| platform.name() == name)
            .ok_or_else(|| UnknownPlatform {
                name: name.to_owned(),
            })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{what} is not a name: expected 1 to 256 bytes without control characters")]
pub struct InvalidName {
    what: &'static str,
}

macro_rules! platform_name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                let fits = (1..=256).contains(&text.len()) && !text.contains(char::is_control);
                if fits { Ok(Self(text)) } else { Err(InvalidName { what: $what }) }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self(number.to_string())
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

platform_name!(
    /// A person or a bot, by the name the platform never gives to another.
    UserId,
    "user id"
);
platform_name!(
    /// What people are made in a place, as a server on Discord names it.
    RoleId,
    "role id"
);
platform_name!(ChatId, "chat id");
platform_name!(
    /// A topic or thread inside a chat.
    ThreadId,
    "thread id"
);
platform_name!(
    /// A message, unique within its chat.
    MessageId,
    "message id"
);
platform_name!(
    /// The one key of an event on its account: the same id twice is the same event twice, whether it
    /// was heard live, handed over again or found in a history.
    UpdateId,
    "update id"
);
platform_name!(
    /// Where the platform keeps a file that came with a message.
    AttachmentId,
    "attachment id"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_neither_empty_nor_long_nor_invisible() {
        for text in ["", "a\nb", "\u{1b}[2J", "\0", &"x".repeat(257)] {
            assert!(UserId::new(text).is_err(), "{text:?} was accepted");
        }
        assert!(UserId::new("491701234567@s.whatsapp.net").is_ok());
    }
}
