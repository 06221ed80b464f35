//! How a business number is set up.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, InMemoryState};
use hermetic_types::{AccountId, Platform, Secret, SharedClock};
use hermetic_upstream::UpstreamProxy;
use thiserror::Error;

use crate::{PhoneNumber, WhatsAppHearing};

/// Where Meta's own servers are.
const GRAPH: &str = "https://graph.facebook.com";

#[derive(Clone, Debug)]
pub struct CloudConfig {
    pub account: AccountId,
    /// The number's id at Meta, which is not the number.
    pub phone_number_id: String,
    pub access_token: Secret,
    /// Signs what Meta posts.
    pub app_secret: Secret,
    /// Asked for once, when the webhook is registered. Without one nobody can register.
    pub verify_token: Option<Secret>,
    /// The path at which Meta calls us.
    pub webhook_path: String,
    pub version: GraphVersion,
    /// `https://graph.facebook.com`, or a stand-in.
    pub base_url: String,
    pub proxy: Option<UpstreamProxy>,
    /// The numbers that the operator wrote into a list. Whoever shows one of them is known by it.
    pub listed_numbers: BTreeSet<PhoneNumber>,
    /// Sent to somebody who wrote nothing for a day and cannot be sent anything else.
    pub template: Option<MessageTemplate>,
    pub hearing: WhatsAppHearing,
    pub timing: CloudTiming,
    pub clock: SharedClock,
    pub state: Arc<dyn AdapterState>,
}

/// A message that Meta has approved, without parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTemplate {
    pub name: String,
    /// As in `en_US`.
    pub language: String,
}

#[derive(Clone, Debug)]
pub struct CloudTiming {
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when Meta asks for one.
    pub throttle: Duration,
    /// How long a notification waits for its events to be stored.
    pub storing: Duration,
    /// How long a send waits for Meta to say what became of the message.
    pub status: Duration,
}

/// A version of the Graph API, such as `v26.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphVersion {
    major: u16,
    minor: u16,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum CloudConfigError {
    #[error(
        "the phone number id is not one: expected digits, as Meta shows them beside the number"
    )]
    PhoneNumberId,
    #[error("the access token is not one: expected printable characters without spaces")]
    AccessToken,
    #[error("the app secret is empty, so that anybody could write in anybody's name")]
    AppSecret,
    #[error(
        "the Graph version {text:?} is not one: expected something like {}",
        GraphVersion::DEFAULT
    )]
    Version { text: String },
    #[error("the API address is not an http address")]
    BaseUrl,
    #[error(
        "the template is not one: expected a name of a-z, 0-9 and '_', and a language such as en_US"
    )]
    Template,
    #[error("the HTTP client cannot be built")]
    Client,
}

impl CloudConfig {
    pub fn new(
        phone_number_id: &str,
        access_token: Secret,
        app_secret: Secret,
        clock: SharedClock,
    ) -> Self {
        Self {
            account: Platform::Whatsapp.into(),
            phone_number_id: phone_number_id.to_owned(),
            access_token,
            app_secret,
            verify_token: None,
            webhook_path: "whatsapp/webhook".to_owned(),
            version: GraphVersion::DEFAULT,
            base_url: GRAPH.to_owned(),
            proxy: None,
            listed_numbers: BTreeSet::new(),
            template: None,
            hearing: WhatsAppHearing::default(),
            timing: CloudTiming::default(),
            clock,
            state: Arc::new(InMemoryState::default()),
        }
    }

    pub(super) fn check(&self) -> Result<(), CloudConfigError> {
        let digits =
            |text: &str| (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(&self.phone_number_id) {
            return Err(CloudConfigError::PhoneNumberId);
        }
        let token = self.access_token.expose();
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(CloudConfigError::AccessToken);
        }
        if self.app_secret.expose().trim().is_empty() {
            return Err(CloudConfigError::AppSecret);
        }
        match &self.template {
            Some(template) if !template.is_one() => Err(CloudConfigError::Template),
            _ => Ok(()),
        }
    }
}

impl MessageTemplate {
    fn is_one(&self) -> bool {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let letters = |b: u8| b.is_ascii_alphabetic() || b == b'_';
        (1..=512).contains(&self.name.len())
            && self.name.bytes().all(plain)
            && (2..=8).contains(&self.language.len())
            && self.language.bytes().all(letters)
    }
}

impl GraphVersion {
    /// The newest when this was written, so that it lasts longest.
    pub const DEFAULT: Self = Self {
        major: 26,
        minor: 0,
    };

    /// The newest that Meta has switched off: v20.0, which Hermes has for its default, on 24 September
    /// 2026. Meta answers such a call as the oldest version that it still has.
    const EXPIRED: Self = Self {
        major: 20,
        minor: 0,
    };

    pub fn is_expired(self) -> bool {
        self <= Self::EXPIRED
    }
}

impl FromStr for GraphVersion {
    type Err = CloudConfigError;

    fn from_str(text: &str) -> Result<Self, CloudConfigError> {
        let parts = text.trim().trim_start_matches('v').split_once('.');
        let number = |text: &str| text.parse::<u16>().ok();
        parts
            .and_then(|(major, minor)| Some((number(major)?, number(minor)?)))
            .map(|(major, minor)| Self { major, minor })
            .ok_or_else(|| CloudConfigError::Version {
                text: text.chars().take(20).collect(),
            })
    }
}

impl fmt::Display for GraphVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

impl Default for CloudTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            storing: Duration::from_secs(10),
            // Meta tells within a second or two; a message that is refused later is told later.
            status: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_the_expired_ones_known() {
        let read = |text: &str| text.parse::<GraphVersion>();
        assert_eq!(read("v26.0"), Ok(GraphVersion::DEFAULT));
        assert_eq!(
            read("21.0").map(|version| version.to_string()),
            Ok("v21.0".to_owned())
        );
        assert!(read("v20.0").is_ok_and(GraphVersion::is_expired));
        assert!(read("v9.1").is_ok_and(GraphVersion::is_expired));
        assert!(!GraphVersion::DEFAULT.is_expired());
        for text in ["", "v", "v20", "latest", "v20.0/../me", "v-1.0", "v70000.0"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_number_without_a_secret_does_not_start() {
        let secret = |text: &str| Secret::new(text);
        let check = |id, token, app| {
            let clock = hermetic_types::SystemClock::shared();
            CloudConfig::new(id, secret(token), secret(app), clock).check()
        };
        assert_eq!(check("1065", "EAAtoken", "app"), Ok(()));
        assert_eq!(
            check("1065", "EAAtoken", " "),
            Err(CloudConfigError::AppSecret)
        );
        assert_eq!(
            check("1065", "two words", "app"),
            Err(CloudConfigError::AccessToken)
        );
        assert_eq!(
            check("../me", "EAAtoken", "app"),
            Err(CloudConfigError::PhoneNumberId)
        );
    }
}
