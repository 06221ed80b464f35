//! A chat that says nothing once the lease is lost.
//!
//! A gateway that was asleep may wake in the middle of a send, long after another took its place. Its writes
//! fail, but what it had written down before it fell asleep it would still say.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AttachmentStream, Capabilities, Chat, ChatReply, ChatState, CheckError,
    DownloadError, HttpIntake, OutgoingFile, OutgoingText, ReceiveError, ReceivedEvent,
    ReplyButton, SendError, SendFailure,
};
use hermetic_types::{AccountId, Attachment, ButtonPress, ChatPlace, MessageId, UserId};
use tokio_util::sync::CancellationToken;

use super::LeaseClock;

#[derive(Debug)]
pub struct LeasedChat {
    chat: Arc<dyn Chat>,
    lease: LeaseClock,
}

impl LeasedChat {
    pub fn new(chat: Arc<dyn Chat>, lease: LeaseClock) -> Self {
        Self { chat, lease }
    }

    /// What is said, if it may be said.
    fn if_held<'a, T: Send + 'a>(
        &self,
        say: impl FnOnce() -> BoxFuture<'a, Result<T, SendError>>,
    ) -> BoxFuture<'a, Result<T, SendError>> {
        if self.lease.is_held() {
            return say();
        }
        let description = "this gateway serves no longer".to_owned();
        ready(Err(SendFailure::Refused { description }.into())).boxed()
    }
}

impl Chat for LeasedChat {
    fn account(&self) -> &AccountId {
        self.chat.account()
    }

    fn capabilities(&self) -> &Capabilities {
        self.chat.capabilities()
    }

    fn state(&self) -> ChatState {
        self.chat.state()
    }

    fn is_own(&self) -> bool {
        self.chat.is_own()
    }

    fn is_portable(&self) -> bool {
        self.chat.is_portable()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.chat.check()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        // Not held back: what is heard now cannot be written down by us, so its receipt is not
        // signed and the platform tells it to whoever serves.
        self.chat.receive(stop)
    }

    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        Arc::clone(&self.chat).intake()
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.if_held(|| self.chat.send(place, reply))
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.if_held(|| self.chat.edit(place, message, text, buttons))
    }

    fn refresh<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.if_held(|| self.chat.refresh(place, message, text))
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.if_held(|| self.chat.typing(place))
    }

    fn acknowledge_press<'a>(
        &'a self,
        press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.if_held(|| self.chat.acknowledge_press(press))
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.if_held(|| self.chat.answer_press(press, notice))
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.if_held(|| self.chat.send_file(place, file))
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.chat.download(attachment, limit)
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        self.if_held(|| self.chat.private_place(user))
    }
}
