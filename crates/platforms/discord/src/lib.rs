//! Discord, by its public gateway and HTTP API.
//!
//! Events come by a websocket that is resumed from the last stored one; what no session remembers is
//! read from the histories. Everything else is asked for over HTTP, within Discord's limits. Of an event
//! only what we use is read: one field that nobody knows must not cost a message.

#![forbid(unsafe_code)]

mod channels;
mod check;
mod close_code;
mod commands;
mod config;
mod connection;
mod dialect;
mod dispatch;
mod files;
mod heard_until;
mod hearing;
mod interactions;
mod listener;
mod members;
#[doc(hidden)]
pub mod parser;
mod presses;
mod rate_limits;
mod receive;
mod requests;
mod route;
mod send;
mod session;
mod settlement;
mod snowflake;
mod socket;
mod sweep;
mod threads;
mod trouble;
mod wire;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AdapterState, AttachmentStream, ButtonLimits, Capabilities, ChannelPositions,
    Chat, ChatReply, ChatState, CheckError, ChoiceShape, DownloadError, MissedMessages,
    OutgoingFile, OutgoingText, ReceiveError, ReceivedEvent, Redelivery, ReplyButton, ReplyRule,
    ReportedChanges, SendError, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatPlace, MessageId, Secret, SharedClock, UserId,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use channels::KnownChannels;
use interactions::OpenInteractions;
use snowflake::Snowflake;
use wire::DiscordApi;

pub use config::{
    BackfillLimits, CommandArgument, CommandSync, DiscordConfig, DiscordConfigError,
    DiscordHearing, DiscordTiming, SlashCommand,
};

/// What Discord takes in one message.
pub(crate) const MESSAGE: TextLimit = TextLimit::characters(2000);

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    edits: true,
    reports_changes: ReportedChanges::ALL,
    buttons: Some(ButtonLimits {
        most: requests::ROWS * requests::BUTTONS_IN_ROW,
        data_bytes: 100,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(0),
    files_out: Some(files::UPLOAD_BYTES as u64),
    threads: true,
    typing: Some(Duration::from_secs(10)),
    redelivery: Redelivery::WhileConnected,
    missed: MissedMessages::Read,
    // Discord says "the past few minutes".
    send_keys: Some(Duration::from_secs(120)),
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

#[derive(Debug)]
pub struct DiscordAdapter {
    account: AccountId,
    capabilities: Capabilities,
    token: Secret,
    wire: Arc<DiscordApi>,
    hearing: DiscordHearing,
    message_content: bool,
    needs_roles: bool,
    backfill: BackfillLimits,
    max_attachment_bytes: u64,
    commands: Vec<SlashCommand>,
    command_sync: CommandSync,
    clock: SharedClock,
    timing: DiscordTiming,
    store: Arc<dyn AdapterState>,
    state: Mutex<ChatState>,
    /// Who we are, once Discord told us.
    me: OnceLock<Snowflake>,
    channels: KnownChannels,
    positions: OnceCell<ChannelPositions>,
    interactions: Arc<OpenInteractions>,
    /// What makes nonces of this store unlike those of another.
    salt: OnceCell<String>,
    /// Our commands were announced, or could not be.
    announced: OnceCell<()>,
}

impl DiscordAdapter {
    pub fn new(
        config: DiscordConfig,
        state: Arc<dyn AdapterState>,
    ) -> Result<Self, DiscordConfigError> {
        let wire = Arc::new(DiscordApi::new(&config)?);
        let with_words = config.commands.iter().filter_map(|command| {
            let words = command.argument.as_ref()?.words.clone();
            Some((command.name.clone(), words))
        });
        let patience = config.timing.acknowledge;
        let interactions = OpenInteractions::new(Arc::clone(&wire), patience, with_words.collect());
        Ok(Self {
            account: config.account,
            capabilities: Capabilities {
                files_in: Some(config.max_attachment_bytes),
                ..CAPABILITIES
            },
            token: config.token,
            wire,
            hearing: config.hearing,
            message_content: config.message_content,
            needs_roles: config.needs_roles,
            backfill: config.backfill,
            max_attachment_bytes: config.max_attachment_bytes,
            commands: config.commands,
            command_sync: config.command_sync,
            clock: config.clock,
            timing: config.timing,
            channels: KnownChannels::new(Arc::clone(&state)),
            store: state,
            state: Mutex::new(ChatState::Starting),
            me: OnceLock::new(),
            positions: OnceCell::new(),
            interactions: Arc::new(interactions),
            salt: OnceCell::new(),
            announced: OnceCell::new(),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Chat for DiscordAdapter {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn state(&self) -> ChatState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.check_account().boxed()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        listener::stream(self, stop)
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
        self.send_attachment(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.fetch(attachment, limit).boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        self.open_private(user).boxed()
    }
}
