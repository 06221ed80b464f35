//! What an account is made of.

use std::collections::BTreeSet;
use std::time::Duration;

use hermetic_types::{AccountId, ChatId, Platform, Secret, SharedClock};
use hermetic_upstream::UpstreamProxy;
use thiserror::Error;

/// Where Slack's own servers are.
pub(crate) const API_BASE: &str = "https://slack.com/api";

#[derive(Clone, Debug)]
pub struct SlackConfig {
    pub account: AccountId,
    /// `SLACK_BOT_TOKEN` (xoxb).
    pub bot_token: Secret,
    pub intake: SlackEventIntake,
    /// `https://slack.com/api`, or a stand-in.
    pub api_base: String,
    pub proxy: Option<UpstreamProxy>,
    pub hearing: SlackHearing,
    pub timing: SlackTiming,
    /// By which a request is fresh or stale, and a sweep reaches back.
    pub clock: SharedClock,
}

/// How events come to us.
#[derive(Clone, Debug)]
pub enum SlackEventIntake {
    /// Over websockets that we open with `SLACK_APP_TOKEN` (xapp).
    SocketMode { app_token: Secret },
    /// Slack posts to `url` and signs with `SLACK_SIGNING_SECRET`.
    EventsApi { url: String, signing_secret: Secret },
}

/// What in a channel is meant for us.
#[derive(Clone, Debug)]
pub struct SlackHearing {
    /// `SLACK_REQUIRE_MENTION`: in channels only what names us, and threads in which we were named.
    pub require_mention: bool,
    /// `SLACK_STRICT_MENTION`: a thread in which we were named needs our name each time, too.
    pub strict_mention: bool,
    /// `SLACK_FREE_RESPONSE_CHANNELS`: channels where no mention is needed all the same.
    pub free_response_channels: BTreeSet<ChatId>,
    /// `SLACK_ALLOWED_CHANNELS`: if there are any, only these channels.
    pub allowed_channels: BTreeSet<ChatId>,
    pub bots: HeardBots,
}

/// `SLACK_ALLOW_BOTS`; whether such a bot may speak is up to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardBots {
    Ignore,
    /// Only what names us, so that two bots do not talk to each other for ever.
    HearMentions,
    Hear,
}

#[derive(Clone, Debug)]
pub struct SlackTiming {
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when Slack asks for one.
    pub throttle: Duration,
    /// How often a socket is pinged.
    pub ping: Duration,
    /// A socket on which not even a pong came for so long is dead.
    pub silence: Duration,
    /// How long a socket is still read after its successor is open.
    pub drain: Duration,
    /// When an event that Slack sends only once is acknowledged, stored or not. Slack shows the person
    /// an error after three seconds.
    pub acknowledge_within: Duration,
    /// How long a posted event waits to be stored.
    pub storing: Duration,
    /// How far back a sweep of the history goes.
    pub sweep_window: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum SlackConfigError {
    #[error("the bot token is not one: expected xoxb- and letters, digits and '-'")]
    BotToken,
    #[error("the app token is not one: expected xapp- and letters, digits and '-'")]
    AppToken,
    #[error("the signing secret is empty")]
    SigningSecret,
    #[error("the API address is not an http address")]
    ApiBase,
    #[error("the HTTP client cannot be built")]
    Client,
}

impl SlackConfig {
    pub fn new(bot_token: Secret, intake: SlackEventIntake, clock: SharedClock) -> Self {
        Self {
            account: Platform::Slack.into(),
            bot_token,
            intake,
            api_base: API_BASE.to_owned(),
            proxy: None,
            hearing: SlackHearing::default(),
            timing: SlackTiming::default(),
            clock,
        }
    }

    pub(crate) fn check_secrets(&self) -> Result<(), SlackConfigError> {
        if !is_token(&self.bot_token, "xoxb-") {
            return Err(SlackConfigError::BotToken);
        }
        match &self.intake {
            SlackEventIntake::SocketMode { app_token } if !is_token(app_token, "xapp-") => {
                Err(SlackConfigError::AppToken)
            }
            SlackEventIntake::EventsApi { signing_secret, .. } if signing_secret.is_empty() => {
                Err(SlackConfigError::SigningSecret)
            }
            _ => Ok(()),
        }
    }
}

fn is_token(token: &Secret, prefix: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let token = token.expose();
    token.len() <= 512 && token.starts_with(prefix) && token.bytes().all(plain)
}

impl Default for SlackHearing {
    fn default() -> Self {
        Self {
            require_mention: true,
            strict_mention: false,
            free_response_channels: BTreeSet::new(),
            allowed_channels: BTreeSet::new(),
            bots: HeardBots::Ignore,
        }
    }
}

impl Default for SlackTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            ping: Duration::from_secs(10),
            silence: Duration::from_secs(35),
            drain: Duration::from_secs(15),
            acknowledge_within: Duration::from_secs(2),
            // A little less than the three seconds after which Slack posts it again.
            storing: Duration::from_millis(2800),
            // As long as Telegram keeps what nobody fetched: an older order is rarely still meant.
            sweep_window: Duration::from_secs(24 * 3600),
        }
    }
}
