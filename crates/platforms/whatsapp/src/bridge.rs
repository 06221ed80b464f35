//! An ordinary account, by a bridge that runs beside the gateway.
//!
//! The bridge is the one of Hermes Agent, a program for Node that speaks WhatsApp's own protocol; we
//! neither ship nor start it. It asks for no credential, so it must listen on loopback only.

mod api;
mod config;
mod message;
mod poll;
mod send;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AccountCheck, AccountShortcoming, AdapterState, AttachmentStream, Capabilities, Chat,
    ChatReply, ChatState, CheckError, DownloadError, MissedMessages, OutgoingFile, OutgoingText,
    ReceiveError, ReceivedEvent, Redelivery, ReplyButton, ReplyRule, ReportedChanges, SendError,
    SendFailure, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ChatKind, ChatPlace, MessageId, SharedClock, Timestamp, UserId,
};
use tokio_util::sync::CancellationToken;

use crate::WhatsAppHearing;
use api::BridgeApi;
use message::Jid;
use poll::{BridgePoller, RawHealth};

pub use config::{BridgeConfig, BridgeConfigError, BridgeTiming};

/// What WhatsApp takes in one message, without what the bridge may put before it.
const MESSAGE: TextLimit = TextLimit::utf16(4000);
const FILE_BYTES: u64 = 100 << 20;

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    edits: true,
    reports_changes: ReportedChanges::NONE,
    buttons: None,
    files_in: Some(FILE_BYTES),
    files_out: Some(FILE_BYTES),
    threads: false,
    typing: Some(Duration::from_secs(10)),
    // From our own disk. What the bridge could not keep while we were away is lost: it has no history.
    redelivery: Redelivery::WhileConnected,
    missed: MissedMessages::Kept("by the bridge, as far as it has room"),
    send_keys: None,
    ordered_messages: false,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

/// One account behind one bridge.
#[derive(Debug)]
pub struct WhatsAppBridge {
    account: AccountId,
    api: BridgeApi,
    media_folders: Vec<PathBuf>,
    outgoing_folder: PathBuf,
    hearing: WhatsAppHearing,
    timing: BridgeTiming,
    clock: SharedClock,
    store: Arc<dyn AdapterState>,
    state: Mutex<ChatState>,
}

impl WhatsAppBridge {
    pub fn new(config: BridgeConfig) -> Result<Self, BridgeConfigError> {
        Ok(Self {
            api: BridgeApi::new(&config)?,
            account: config.account,
            media_folders: config.media_folders,
            outgoing_folder: config.outgoing_folder,
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            store: config.state,
            state: Mutex::new(ChatState::Starting),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let health = self.api.get::<RawHealth>("/health").await;
        let health = health.map_err(|error| CheckError::Unreachable(Box::new(error)))?;
        let lost = health.status != "connected";
        let shortcomings = lost.then(|| AccountShortcoming {
            problem: format!("the bridge is not connected to WhatsApp: {}", health.status),
            remedy: "look at the bridge's own log, and scan its QR code with the phone".to_owned(),
        });
        Ok(AccountCheck {
            name: None,
            shortcomings: shortcomings.into_iter().collect(),
        })
    }
}

impl Chat for WhatsAppBridge {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
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
        let begun = (BridgePoller::new(self), stop);
        stream::unfold(begun, move |(mut poller, stop)| async move {
            let next = poller.next(&stop).await;
            if next.is_none() {
                self.set_state(ChatState::Stopped {
                    why: "asked to".to_owned(),
                });
            }
            next.map(|received| (Ok(received), (poller, stop)))
        })
        .boxed()
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
        _: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.edit_message(place, message, text).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.send_media(place, file).boxed()
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
        let chat = Jid::of(user).and_then(|jid| jid.chat());
        let place = chat.map(|chat| ChatPlace {
            chat,
            kind: ChatKind::Dm,
            thread: None,
        });
        let nobody = || SendFailure::Refused {
            description: format!("{:?} is nobody on WhatsApp", user.as_str()),
        };
        future::ready(place.ok_or_else(|| nobody().into())).boxed()
    }
}
