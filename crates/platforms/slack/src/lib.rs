//! Slack, by Socket Mode or the Events API, and the Web API for everything that leaves.
//!
//! While we are connected Slack hands an event over until it is acknowledged, which it is when it is
//! stored; what was said while nobody was connected is swept from the histories. One account is one
//! workspace (or one organisation, where the app is installed in all of it).

#![forbid(unsafe_code)]

mod account;
mod acknowledgement;
mod blocks;
mod check;
mod config;
mod download;
mod events_api;
mod hearing;
mod held_events;
mod history;
mod identity;
mod inbox;
mod incoming_text;
mod interactions;
mod last_connected;
mod listening;
mod mrkdwn;
mod names;
mod pace;
#[doc(hidden)]
pub mod parser;
mod presses;
mod reading;
mod send;
mod signature;
mod socket;
mod socket_mode;
mod sweep;
mod threads;
mod ts;
mod upload;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AdapterState, AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply,
    ChatState, CheckError, ChoiceShape, DownloadError, HttpIntake, MissedMessages, OutgoingFile,
    OutgoingText, ReceiveError, ReceivedEvent, Redelivery, ReplyButton, ReplyRule, ReportedChanges,
    SendError, TextLimit, UnaskedMessages,
};
use hermetic_types::{AccountId, Attachment, ButtonPress, ChatPlace, MessageId, UserId};
use tokio_util::sync::CancellationToken;

use account::SlackAccount;

pub use config::{
    HeardBots, SlackConfig, SlackConfigError, SlackEventIntake, SlackHearing, SlackTiming,
};
pub use mrkdwn::to_mrkdwn;
pub use signature::{SIGNATURE_HEADER, TIMESTAMP_HEADER};

/// What we put into one message. Slack takes 4000 in an edit and 3000 in a section, after escaping, which
/// makes a text longer.
pub(crate) const MESSAGE: TextLimit = TextLimit::characters(3000);

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    edits: true,
    reports_changes: ReportedChanges::ALL,
    buttons: Some(ButtonLimits {
        most: 25,
        data_bytes: 2000,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(download::DOWNLOAD_BYTES),
    files_out: Some(upload::UPLOAD_BYTES as u64),
    threads: true,
    // Slack shows it for two minutes.
    typing: Some(Duration::from_secs(60)),
    redelivery: Redelivery::WhileConnected,
    missed: MissedMessages::Read,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

/// One bot in one workspace.
#[derive(Debug)]
pub struct SlackAdapter {
    account: Arc<SlackAccount>,
}

impl SlackAdapter {
    /// `state` is where positions of channels are kept.
    pub fn new(
        config: SlackConfig,
        state: Arc<dyn AdapterState>,
    ) -> Result<Self, SlackConfigError> {
        let account = Arc::new(SlackAccount::new(config, state)?);
        Ok(Self { account })
    }
}

impl Chat for SlackAdapter {
    fn account(&self) -> &AccountId {
        &self.account.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        self.account.state()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.account.check_account().boxed()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        listening::stream(&self.account, stop)
    }

    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        let SlackEventIntake::EventsApi { url, .. } = &self.account.intake else {
            return None;
        };
        let router = events_api::router(Arc::clone(&self.account));
        Some(HttpIntake::at_url(url, router))
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.account.send_reply(place, reply).boxed()
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.account
            .edit_message(place, message, text, buttons)
            .boxed()
    }

    fn refresh<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.account.refresh_message(place, message, text).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.account.show_typing(place).boxed()
    }

    fn acknowledge_press<'a>(
        &'a self,
        press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.account.acknowledge(press);
        future::ready(Ok(())).boxed()
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.account.answer(press, notice).boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.account.send_file(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.account.download(attachment, limit).boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        self.account.open_private(user).boxed()
    }
}
