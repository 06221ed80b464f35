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
    AccountCheck, AdapterState, AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply,
    ChatState, CheckError, ChoiceShape, DownloadError, MissedMessages, OutgoingFile, OutgoingText,
    ReactionChoices, ReceiveError, ReceivedEvent, Redelivery, ReplyRule, ReportedChanges,
    SendError, TextLimit, ThrottledChats, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatId, ChatPlace, MessageId, Platform, SharedClock,
    UpdateId, UserId,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use choices::KeptChoices;
use daemon::SignalDaemon;
use leftovers::UnstoredEvents;
use people::SignalPeople;
use presence::PresenceSignals;
use recent::RecentValues;

pub use endpoint::DaemonEndpoint;

/// What fits one message. The daemon sends the rest as a file by itself.
pub(crate) const MESSAGE: TextLimit = TextLimit::bytes(2000);

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    // There are edits, but apps show only a few of each message and keep all of them to look at: nothing
    // for an answer that grows.
    edits: false,
    reports_changes: ReportedChanges::ALL,
    // Reactions.
    buttons: Some(ButtonLimits {
        most: ReactionChoices::MOST,
        data_bytes: 64,
        shown: ChoiceShape::Reactions,
    }),
    files_in: Some(files::DOWNLOAD_BYTES),
    files_out: Some(files::UPLOAD_BYTES as u64),
    threads: false,
    typing: Some(presence::TYPING),
    redelivery: Redelivery::Never,
    missed: MissedMessages::Kept(
        "by Signal, if its daemon runs with `--receive-mode=on-connection`",
    ),
    send_keys: None,
    // They are times, each by its sender's clock.
    ordered_messages: false,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

#[derive(Clone, Debug)]
pub struct SignalConfig {
    pub account: AccountId,
    /// The number that the daemon runs as, with its country: `+4915112345678`.
    pub number: String,
    pub endpoint: DaemonEndpoint,
    /// People whom the operator wrote down, by number or by id. Somebody listed twice is called by the
    /// first.
    pub listed: Vec<UserId>,
    pub hearing: SignalHearing,
    pub timing: SignalTiming,
    /// What has to survive a restart.
    pub state: Arc<dyn AdapterState>,
    pub clock: SharedClock,
}

/// What in a group is meant for us.
#[derive(Clone, Debug, Default)]
pub struct SignalHearing {
    /// `SIGNAL_REQUIRE_MENTION`: in groups only what mentions us or replies to us.
    pub require_mention: bool,
    /// `SIGNAL_GROUP_ALLOWED_USERS`.
    pub groups: HeardGroups,
}

/// The groups that are listened to. Who may speak there is up to access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeardGroups {
    #[default]
    None,
    All,
    Listed(BTreeSet<ChatId>),
}

#[derive(Clone, Debug)]
pub struct SignalTiming {
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when Signal asks for one.
    pub throttle: Duration,
    /// How often the daemon is asked whether it still has our account.
    pub ping: Duration,
    /// How often Signal itself is asked that, by way of the daemon.
    pub prove: Duration,
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
pub struct SignalAdapter {
    account: AccountId,
    number: String,
    daemon: SignalDaemon,
    people: SignalPeople,
    hearing: SignalHearing,
    timing: SignalTiming,
    pace: ThrottledChats,
    presence: PresenceSignals,
    choices: KeptChoices,
    leftovers: UnstoredEvents,
    clock: SharedClock,
    state: Mutex<ChatState>,
    /// Events taken over lately: a daemon that was asked twice says everything twice.
    seen: RecentValues<UpdateId>,
    /// Our own messages.
    sent: RecentValues<u64>,
    /// The beginnings of what others wrote, to be quoted.
    texts: RecentValues<MessageId, String>,
    /// What was changed lately, and the message that each change goes back to.
    originals: RecentValues<MessageId, MessageId>,
}

impl SignalAdapter {
    pub fn new(config: SignalConfig) -> Result<Self, SignalConfigError> {
        if !envelope::is_number(&config.number) {
            return Err(SignalConfigError::Number);
        }
        Ok(Self {
            daemon: SignalDaemon::new(&config)?,
            people: SignalPeople::new(&config.number, &config.listed, Arc::clone(&config.state)),
            leftovers: UnstoredEvents::new(Arc::clone(&config.state)),
            choices: KeptChoices::new(config.state),
            account: config.account,
            number: config.number,
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            pace: ThrottledChats::default(),
            presence: PresenceSignals::default(),
            state: Mutex::new(ChatState::Starting),
            seen: RecentValues::default(),
            sent: RecentValues::default(),
            texts: RecentValues::default(),
            originals: RecentValues::default(),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Chat for SignalAdapter {
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

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        receive::stream(self, stop)
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.send_reply(place, reply).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    /// As a message: a reaction shows no words.
    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            let reply = ChatReply {
                reply_to: Some(press.message.clone()),
                ..ChatReply::text(notice.clone())
            };
            self.send_reply(&press.place, &reply).await.map(drop)
        }
        .boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
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
    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        self.place_of(user).boxed()
    }
}

impl SignalConfig {
    pub fn new(
        number: &str,
        endpoint: DaemonEndpoint,
        state: Arc<dyn AdapterState>,
        clock: SharedClock,
    ) -> Self {
        Self {
            account: Platform::Signal.into(),
            number: number.to_owned(),
            endpoint,
            listed: Vec::new(),
            hearing: SignalHearing::default(),
            timing: SignalTiming::default(),
            state,
            clock,
        }
    }
}

impl HeardGroups {
    fn hold(&self, group: &ChatId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Listed(listed) => listed.contains(group),
        }
    }
}

impl Default for SignalTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(60),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            ping: Duration::from_secs(60),
            prove: Duration::from_secs(15 * 60),
            // Two signs of life missed, and a slow machine's time.
            silence: Duration::from_secs(40),
        }
    }
}
