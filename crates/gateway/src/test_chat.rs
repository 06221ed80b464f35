//! An account that notes what it is asked to do, for unit tests of this crate.

use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    ButtonLimits, Capabilities, Chat, ChatReply, ChatState, ChoiceShape, MissedMessages,
    OutgoingText, ReceiveError, ReceivedEvent, Redelivery, ReplyRule, ReportedChanges, SendError,
    SendFailure, TextLimit, UnaskedMessages,
};
use hermetic_types::{AccountId, ButtonPress, ChatId, ChatKind, ChatPlace, MessageId, UserId};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct NotingChat {
    account: AccountId,
    capabilities: Capabilities,
    noted: Mutex<Vec<String>>,
}

/// A platform that can do all that a test asks of it.
pub(crate) const ABLE: Capabilities = Capabilities {
    text: TextLimit::characters(4000),
    edits: true,
    reports_changes: ReportedChanges::NONE,
    buttons: Some(ButtonLimits {
        most: 5,
        data_bytes: 64,
        shown: ChoiceShape::Buttons,
    }),
    files_in: None,
    files_out: None,
    threads: true,
    typing: None,
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

impl NotingChat {
    pub(crate) fn new(account: &str) -> Self {
        Self::with(account, ABLE)
    }

    pub(crate) fn with(account: &str, capabilities: Capabilities) -> Self {
        Self {
            account: account.parse().unwrap(),
            capabilities,
            noted: Mutex::default(),
        }
    }

    pub(crate) fn noted(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn note(&self, what: String) -> usize {
        let mut noted = self.lock();
        noted.push(what);
        noted.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chat for NotingChat {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(&self, _: CancellationToken) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        stream::pending().boxed()
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        let buttons: usize = reply.buttons.iter().map(Vec::len).sum();
        let text = reply.text.as_str().lines().next().unwrap_or_default();
        let number = self.note(format!(
            "send to {}: {text} ({buttons} buttons)",
            place.chat
        ));
        ready(Ok(vec![MessageId::new(number.to_string()).unwrap()])).boxed()
    }

    fn acknowledge_press<'a>(
        &'a self,
        press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.note(format!("acknowledge {}", press.query));
        ready(Ok(())).boxed()
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.note(format!("answer {}: {}", press.query, notice.as_str()));
        ready(Ok(())).boxed()
    }

    /// Has to be opened, and nobody is called `nobody`.
    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        if user.as_str() == "nobody" {
            let description = "no such user".to_owned();
            return ready(Err(SendFailure::Refused { description }.into())).boxed();
        }
        self.note(format!("open {user}"));
        let place = ChatPlace {
            chat: ChatId::new(format!("dm-{user}")).unwrap(),
            kind: ChatKind::Dm,
            thread: None,
        };
        ready(Ok(place)).boxed()
    }
}
