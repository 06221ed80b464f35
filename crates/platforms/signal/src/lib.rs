//! Signal, by signal-cli's daemon.
//!
//! Signal has no interface for bots. signal-cli is a client without a screen: it holds the keys, speaks to
//! Signal's servers and hands messages on, over HTTP or over a socket. We never start it and never see a
//! key. What it does not promise, we cannot: it hands a message over once and forgets it, so what it gives
//! to nobody is lost (decision 0062).

#![forbid(unsafe_code)]

mod check;
mod choices;
mod daemon;
mod endpoint;
mod envelope;
mod events;
mod files;
mod hear;
mod http;
mod leftovers;
mod lines;
mod mentions;
mod names;
#[doc(hidden)]
pub mod parser;
mod people;
mod presence;
mod receive;
mod recent;
mod rpc;
mod send;
mod socket;
mod sse;
mod styles;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AdapterState, AttachmentStream, ButtonLimits, Capabilities, Chat, ChatState,
    CheckError, DownloadError, Outgoing, OutgoingFile, ReceiveError, Received, Redelivery, Reply,
    ReplyRule, SendError, TextLimit, ThrottledChats,
};
use hermetic_types::{
    AccountId, Attachment, ChatId, MessageId, Place, Platform, Press, SharedClock, SystemClock,
    UpdateId, UserId,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use choices::KeptChoices;
use daemon::Daemon;
use leftovers::Leftovers;
use people::People;
use presence::Presence;
use recent::Recent;

pub use endpoint::Endpoint;

/// What fits one message. The daemon sends the rest as a file by itself.
pub(crate) const MESSAGE: TextLimit = TextLimit::bytes(2000);

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    // There are edits, but apps show only a few of each message and keep all of them to look at: nothing
    // for an answer that grows.
    edits: false,
    // Reactions.
    buttons: Some(ButtonLimits {
        most: choices::MOST,
        data_bytes: 64,
    }),
    files_in: Some(files::DOWNLOAD_BYTES),
    files_out: Some(files::UPLOAD_BYTES as u64),
    threads: false,
    typing: Some(presence::TYPING),
    redelivery: Redelivery::Never,
    send_keys: None,
    // They are times, each by its sender's clock.
    ordered_messages: false,
    replies: ReplyRule::Free,
};

#[derive(Clone, Debug)]
pub struct SignalConfig {
    pub account: AccountId,
    /// The number that the daemon runs as, with its country: `+4915112345678`.
    pub number: String,
    pub endpoint: Endpoint,
    /// People whom the operator wrote down, by number or by id. Somebody listed twice is called by the
    /// first.
    pub listed: Vec<UserId>,
    pub hearing: Hearing,
    pub timing: Timing,
    /// What has to survive a restart.
    pub state: Arc<dyn AdapterState>,
    pub clock: SharedClock,
}

/// What in a group is meant for us.
#[derive(Clone, Debug, Default)]
pub struct Hearing {
    /// `SIGNAL_REQUIRE_MENTION`: in groups only what mentions us or replies to us.
    pub require_mention: bool,
    /// `SIGNAL_GROUP_ALLOWED_USERS`.
    pub groups: Groups,
}

/// The groups that are listened to. Who may speak there is up to access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    #[default]
    None,
    All,
    Listed(BTreeSet<ChatId>),
}

#[derive(Clone, Debug)]
pub struct Timing {
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when Signal asks for one.
    pub throttle: Duration,
    /// How often the daemon is asked whether it still has our account.
    pub ping: Duration,
    /// The daemon shows every fifteen seconds that it lives; after this long it does not.
    pub silence: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum SignalConfigError {
    #[error(
        "the address of signal-cli's daemon is none: expected http://host:port, tcp://host:port or unix:///path"
    )]
    Address,
    #[error("the account is no number with its country, as in +4915112345678")]
    Number,
    #[error("the HTTP client cannot be built")]
    Client,
}

#[derive(Debug)]
pub struct Signal {
    account: AccountId,
    number: String,
    daemon: Daemon,
    people: People,
    hearing: Hearing,
    timing: Timing,
    pace: ThrottledChats,
    presence: Presence,
    choices: KeptChoices,
    leftovers: Leftovers,
    clock: SharedClock,
    state: Mutex<ChatState>,
    /// Events taken over lately: a daemon that was asked twice says everything twice.
    seen: Recent<UpdateId>,
    /// Our own messages.
    sent: Recent<u64>,
    /// The beginnings of what others wrote, to be quoted.
    texts: Recent<MessageId, String>,
}

impl Signal {
    pub fn new(config: SignalConfig) -> Result<Self, SignalConfigError> {
        if !envelope::is_number(&config.number) {
            return Err(SignalConfigError::Number);
        }
        Ok(Self {
            daemon: Daemon::new(&config)?,
            people: People::new(&config.number, &config.listed, Arc::clone(&config.state)),
            leftovers: Leftovers::new(Arc::clone(&config.state)),
            choices: KeptChoices::new(config.state),
            account: config.account,
            number: config.number,
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            pace: ThrottledChats::default(),
            presence: Presence::default(),
            state: Mutex::new(ChatState::Starting),
            seen: Recent::default(),
            sent: Recent::default(),
            texts: Recent::default(),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Chat for Signal {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.check_account().boxed()
    }

    fn receive(&self, stop: CancellationToken) -> BoxStream<'_, Result<Received, ReceiveError>> {
        receive::stream(self, stop)
    }

    fn send<'a>(
        &'a self,
        place: &'a Place,
        reply: &'a Reply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.send_reply(place, reply).boxed()
    }

    fn typing<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    /// As a message: a reaction shows no words.
    fn answer_press<'a>(
        &'a self,
        press: &'a Press,
        notice: &'a Outgoing,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            let reply = Reply {
                reply_to: Some(press.message.clone()),
                ..Reply::text(notice.clone())
            };
            self.send_reply(&press.place, &reply).await.map(drop)
        }
        .boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a Place,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.send_attachment(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.fetch(attachment, limit).boxed()
    }

    /// A private chat is named after the person in it.
    fn private_place<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Place, SendError>> {
        self.place_of(user).boxed()
    }
}

impl SignalConfig {
    pub fn new(number: &str, endpoint: Endpoint, state: Arc<dyn AdapterState>) -> Self {
        Self {
            account: Platform::Signal.into(),
            number: number.to_owned(),
            endpoint,
            listed: Vec::new(),
            hearing: Hearing::default(),
            timing: Timing::default(),
            state,
            clock: SystemClock::shared(),
        }
    }
}

impl Groups {
    fn hold(&self, group: &ChatId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Listed(listed) => listed.contains(group),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(60),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            ping: Duration::from_secs(60),
            // Two signs of life missed, and a slow machine's time.
            silence: Duration::from_secs(40),
        }
    }
}
