//! The chat of the story: two people, and what is said to them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures::future::{self, BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use hermetic_chat::{
    Capabilities, Chat, ChatEvent, ChatReply, ChatState, MissedMessages, Receipt, ReceiveError,
    ReceivedEvent, Redelivery, ReplyRule, ReportedChanges, SendError, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, ChatId, ChatKind, ChatPlace, Clock as _, IncomingMessage, MessageId, Platform,
    Sender, SystemClock, UpdateId, UserId,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Who asks.
pub(super) const ADA: i64 = 1;
/// Who has a conversation of his own.
pub(super) const BOB: i64 = 2;

#[derive(Debug)]
pub(super) struct StoryChat {
    account: AccountId,
    say: mpsc::UnboundedSender<IncomingMessage>,
    said: tokio::sync::Mutex<mpsc::UnboundedReceiver<IncomingMessage>>,
    /// The last answer to each person.
    answers: watch::Sender<HashMap<ChatId, String>>,
    counted: Mutex<i64>,
}

const CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::utf16(1 << 16),
    edits: false,
    reports_changes: ReportedChanges::NONE,
    buttons: None,
    files_in: None,
    files_out: None,
    threads: false,
    typing: None,
    redelivery: Redelivery::Never,
    missed: MissedMessages::Lost,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

impl StoryChat {
    pub(super) fn new() -> Self {
        let (say, said) = mpsc::unbounded_channel();
        Self {
            account: Platform::Telegram.into(),
            say,
            said: tokio::sync::Mutex::new(said),
            answers: watch::Sender::default(),
            counted: Mutex::new(0),
        }
    }

    pub(super) fn say(&self, who: i64, text: &str) {
        let number = self.next_number();
        let _ = self.say.send(IncomingMessage {
            account: self.account.clone(),
            update: UpdateId::from(number),
            message: MessageId::from(number),
            place: private_place(&UserId::from(who)),
            sender: Sender {
                id: UserId::from(who),
                display: if who == ADA { "Ada" } else { "Bob" }.to_owned(),
                is_bot: false,
                roles: Vec::new(),
            },
            text: text.to_owned(),
            reply_to: None,
            mentions_us: true,
            attachments: Vec::new(),
            received_at: SystemClock.now(),
        });
    }

    /// Waits for what is said to somebody.
    pub(super) async fn answer_to(&self, who: i64) -> String {
        let mut answers = self.answers.subscribe();
        let chat = ChatId::from(who);
        let answered = answers
            .wait_for(|answers| answers.contains_key(&chat))
            .await;
        answered
            .ok()
            .and_then(|answers| answers.get(&chat).cloned())
            .unwrap_or_default()
    }

    fn next_number(&self) -> i64 {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted += 1;
        *counted
    }
}

impl Chat for StoryChat {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        stream::unfold(stop, move |stop| async move {
            let heard = async { self.said.lock().await.recv().await };
            let incoming = stop.run_until_cancelled(heard).await??;
            // A story is not told again, whatever became of it.
            let (receipt, _counterfoil) = Receipt::pair();
            let event = ChatEvent::Message(incoming);
            Some((Ok(ReceivedEvent { event, receipt }), stop))
        })
        .boxed()
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        let text = reply.text.as_str().to_owned();
        self.answers.send_modify(|answers| {
            answers.insert(place.chat.clone(), text);
        });
        future::ready(Ok(vec![MessageId::from(self.next_number())])).boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        future::ready(Ok(private_place(user))).boxed()
    }
}

fn private_place(user: &UserId) -> ChatPlace {
    ChatPlace {
        // What is a user id is a chat id as well: both are numbers here.
        chat: ChatId::new(user.as_str()).unwrap_or_else(|_| ChatId::from(0)),
        kind: ChatKind::Dm,
        thread: None,
    }
}
