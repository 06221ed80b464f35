//! Telegram, by its public Bot API.
//!
//! Bodies are bounded, files are uploaded from bytes and not from a path, and of an update only what we
//! use is read: one field that nobody knows must not cost a whole batch.

#![forbid(unsafe_code)]

mod check;
mod files;
mod hook;
mod markdown_v2;
mod menu;
#[doc(hidden)]
pub mod parser;
mod poll;
mod presses;
mod requests;
mod send;
mod update;
mod wire;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply, ChatState,
    CheckError, ChoiceShape, DownloadError, HttpIntake, MissedMessages, OutgoingFile, OutgoingText,
    ReceiveError, ReceivedEvent, RecentKeys, Redelivery, RefusalLog, ReplyButton, ReplyRule,
    ReportedChanges, SendError, TextLimit, ThrottledChats, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatId, ChatPlace, MessageId, Platform, Secret,
    SharedClock, ThreadId, UserId,
};
use hermetic_upstream::UpstreamProxy;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use hook::WebhookIntake;
use wire::TelegramApi;

pub use markdown_v2::to_markdown_v2;

/// Where Telegram's own servers are.
pub(crate) const API_BASE: &str = "https://api.telegram.org";

/// Telegram hands out a hundred updates at once.
const KNOWN_UPDATES: usize = 1000;

/// What Telegram takes in one message.
pub(crate) const MESSAGE: TextLimit = TextLimit::utf16(4096);

/// What Telegram's own servers can do.
const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    edits: true,
    // Bots are not told of deletions.
    reports_changes: ReportedChanges {
        edits: true,
        deletions: false,
    },
    buttons: Some(ButtonLimits {
        most: 100,
        data_bytes: 64,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(files::DOWNLOAD_BYTES),
    files_out: Some(files::UPLOAD_BYTES as u64),
    threads: true,
    typing: Some(Duration::from_secs(5)),
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

#[derive(Clone, Debug)]
pub struct TelegramConfig {
    pub account: AccountId,
    pub token: Secret,
    /// `https://api.telegram.org`, or a stand-in.
    pub api_base: String,
    /// `TELEGRAM_PROXY`.
    pub proxy: Option<UpstreamProxy>,
    /// What stands in the menu of the chat; none leaves the menu as it is.
    pub commands: Vec<MenuCommand>,
    pub intake: TelegramIntake,
    pub hearing: TelegramHearing,
    pub timing: TelegramTiming,
    pub clock: SharedClock,
}

/// A command in the menu of the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuCommand {
    /// Without the slash.
    pub name: String,
    pub about: String,
}

/// How updates come to us.
#[derive(Clone, Debug)]
pub enum TelegramIntake {
    LongPoll,
    /// Telegram posts to `url`; only requests that carry `secret` are heard.
    Webhook {
        url: String,
        secret: Secret,
    },
}

/// What in a group is meant for us.
#[derive(Clone, Debug, Default)]
pub struct TelegramHearing {
    /// `TELEGRAM_REQUIRE_MENTION`: in groups only what names us or replies to us.
    pub require_mention: bool,
    /// `TELEGRAM_FREE_RESPONSE_CHATS`: chats where no mention is needed all the same.
    pub free_response_chats: BTreeSet<ChatId>,
    /// `TELEGRAM_ALLOWED_CHATS`: if there are any, only these groups.
    pub allowed_chats: BTreeSet<ChatId>,
    /// `TELEGRAM_ALLOWED_TOPICS`: if there are any, only these topics.
    pub allowed_topics: BTreeSet<ThreadId>,
    /// `TELEGRAM_IGNORED_THREADS`.
    pub ignored_threads: BTreeSet<ThreadId>,
    /// `TELEGRAM_ALLOW_BOTS`; whether such a bot may speak is up to access.
    pub bots: bool,
}

#[derive(Clone, Debug)]
pub struct TelegramTiming {
    /// How long Telegram may hold a poll open.
    pub poll: Duration,
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// One more of these for each time another poller was there first, up to six.
    pub conflict: Duration,
    /// The longest wait a send rides out when Telegram asks for one.
    pub throttle: Duration,
    /// How long a webhook request waits for its update to be stored.
    pub storing: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum TelegramConfigError {
    #[error("the bot token is not one: expected letters, digits, ':', '_' and '-'")]
    Token,
    #[error("the API address is not an http address")]
    ApiBase,
    #[error("the webhook secret must be 1 to 256 letters, digits, '_' and '-'")]
    WebhookSecret,
    #[error("the HTTP client cannot be built")]
    Client,
}

#[derive(Debug)]
pub struct TelegramAdapter {
    account: AccountId,
    capabilities: Capabilities,
    wire: TelegramApi,
    hearing: TelegramHearing,
    timing: TelegramTiming,
    clock: SharedClock,
    pace: ThrottledChats,
    state: Mutex<ChatState>,
    me: OnceLock<BotUser>,
    commands: Vec<MenuCommand>,
    /// Whether the commands were told to Telegram by this process.
    announced: OnceLock<()>,
    /// Updates taken over lately: Telegram repeats itself when it doubts.
    seen: Mutex<RecentKeys<i64>>,
    /// Presses that were acknowledged without a word.
    acknowledged: Mutex<RecentKeys<String>>,
    hook: Option<WebhookIntake>,
    refusals: RefusalLog,
}

/// Who we are to Telegram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BotUser {
    pub(crate) id: i64,
    /// Without the `@`, in lower case.
    pub(crate) username: String,
}

impl TelegramAdapter {
    pub fn new(config: TelegramConfig) -> Result<Self, TelegramConfigError> {
        let hook = match &config.intake {
            TelegramIntake::LongPoll => None,
            TelegramIntake::Webhook { url, secret } => {
                Some(WebhookIntake::new(url.clone(), secret.clone())?)
            }
        };
        Ok(Self {
            wire: TelegramApi::new(&config)?,
            account: config.account,
            capabilities: Capabilities {
                files_in: Some(files::most_handed_out(&config.api_base)),
                ..CAPABILITIES
            },
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            pace: ThrottledChats::default(),
            state: Mutex::new(ChatState::Starting),
            me: OnceLock::new(),
            commands: menu::fitting(config.commands),
            announced: OnceLock::new(),
            seen: Mutex::new(RecentKeys::new(KNOWN_UPDATES)),
            acknowledged: Mutex::new(RecentKeys::new(KNOWN_UPDATES)),
            hook,
            refusals: RefusalLog::default(),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn seen(&self, id: i64) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.contains(&id)
    }

    fn note_seen(&self, id: i64) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(id, ());
    }
}

impl Chat for TelegramAdapter {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Answers are requests of their own. Where Telegram calls us, it is one port that it calls.
    fn is_portable(&self) -> bool {
        self.hook.is_none()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.check_account().boxed()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        match &self.hook {
            None => poll::stream(self, stop),
            Some(hook) => hook.stream(self, stop),
        }
    }

    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        let url = self.hook.as_ref()?.url().to_owned();
        Some(HttpIntake::at_url(&url, hook::router(self)))
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.send_reply(place, reply).boxed()
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.edit_message(place, message, text, buttons).boxed()
    }

    fn refresh<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.refresh_message(place, message, text).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    fn acknowledge_press<'a>(
        &'a self,
        press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.acknowledge(press).boxed()
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.answer(press, notice).boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.send_document(place, file).boxed()
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
        future::ready(send::private_place(user)).boxed()
    }
}

impl TelegramConfig {
    pub fn new(token: Secret, clock: SharedClock) -> Self {
        Self {
            account: Platform::Telegram.into(),
            token,
            api_base: API_BASE.to_owned(),
            proxy: None,
            commands: Vec::new(),
            intake: TelegramIntake::LongPoll,
            hearing: TelegramHearing::default(),
            timing: TelegramTiming::default(),
            clock,
        }
    }
}

impl Default for TelegramTiming {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(50),
            request: Duration::from_secs(30),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            conflict: Duration::from_secs(10),
            throttle: Duration::from_secs(60),
            storing: Duration::from_secs(20),
        }
    }
}
