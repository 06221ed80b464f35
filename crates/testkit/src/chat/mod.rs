//! A chat platform within the process: scripted people, captured replies, no network.
//!
//! [`FakeChat`] keeps the promises of [`hermetic_chat::Chat`]: an event whose receipt was not signed
//! comes again, also after a restart, and always under the same id. What people say is a [`Speech`];
//! what was sent to them is in the [`Record`], and can be waited for.

mod events;
mod faults;
mod record;
mod seam;
mod speech;
mod visible;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hermetic_chat::{SendKey, UndeliveredReply};
use hermetic_types::{
    AccountId, AttachmentId, ChatId, DeletedMessage, MessageId, Platform, SharedClock, Timestamp,
    UserId,
};
use tokio::sync::watch;
use tokio::time::timeout;

use events::Events;
use faults::Faults;

pub use events::UpdateNumber;
pub use faults::{Fault, Operation};
pub use record::{Edit, Notice, Record, SentFile, SentMessage};
pub use speech::Speech;

/// Longer than any answer of a loaded machine takes, and short enough for a failing test.
const PATIENCE: Duration = Duration::from_secs(20);

/// Clones are the same platform: the gateway holds one, the test another.
#[derive(Clone, Debug)]
pub struct FakeChat(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    account: AccountId,
    clock: SharedClock,
    events: Events,
    faults: Faults,
    record: watch::Sender<Record>,
}

impl FakeChat {
    /// The platform's own account.
    pub fn new(platform: Platform, clock: SharedClock) -> Self {
        Self(Arc::new(Shared {
            account: platform.into(),
            clock,
            events: Events::default(),
            faults: Faults::default(),
            record: watch::Sender::default(),
        }))
    }

    /// Somebody writes in private.
    pub fn says(&self, user: impl Into<UserId>, text: &str) -> UpdateNumber {
        self.hear(Speech::by(user, text))
    }

    /// Somebody writes in private, and the platform hands it over only a moment after its listener was told to
    /// stop, as one does that had it in its hands.
    pub fn says_at_stop(&self, user: impl Into<UserId>, text: &str) -> UpdateNumber {
        let update = self.0.events.next_number();
        let message = self.0.next_message();
        let speech = Speech::by(user, text);
        let said = speech.incoming(self.0.account.clone(), update, message, self.now());
        self.0
            .events
            .push_at_stop(update, hermetic_chat::ChatEvent::Message(said));
        update
    }

    /// Somebody writes anywhere, with anything.
    pub fn hear(&self, speech: Speech) -> UpdateNumber {
        let update = self.0.events.next_number();
        let message = self.0.next_message();
        for (index, file) in speech.files.iter().enumerate() {
            let id = speech::upload_id(update, index);
            self.change(|record| record.uploads.insert(id, file.bytes.clone()));
        }
        let said = speech.incoming(self.0.account.clone(), update, message, self.now());
        self.0
            .events
            .push(update, hermetic_chat::ChatEvent::Message(said));
        update
    }

    /// Somebody presses the button with this label under the last message of a chat that has one.
    ///
    /// # Panics
    ///
    /// If there is no such button.
    pub fn presses(&self, user: impl Into<UserId>, chat: impl Into<ChatId>, label: &str) {
        let (message, buttons) = self.record().buttons(&chat.into());
        let data = buttons.into_iter().find(|(text, _)| text == label);
        #[expect(clippy::expect_used, reason = "a test that presses nothing has failed")]
        let (_, data) = data.expect("a button with that label");
        self.presses_data(user, &message, &data);
    }

    /// Something comes back as the data of a button under this message, made up or not.
    pub fn presses_data(&self, user: impl Into<UserId>, message: &MessageId, data: &str) {
        let update = self.0.events.next_number();
        let place = self.record().place_of(message);
        let press = speech::press(
            self.0.account.clone(),
            update,
            (user.into(), place),
            (message, data),
            self.now(),
        );
        self.0
            .events
            .push(update, hermetic_chat::ChatEvent::Press(press));
    }

    /// Somebody deletes a message of their own.
    pub fn deletes(&self, chat: impl Into<ChatId>, message: &MessageId) {
        let update = self.0.events.next_number();
        let deleted = DeletedMessage {
            account: self.0.account.clone(),
            chat: chat.into(),
            message: message.clone(),
        };
        self.0
            .events
            .push(update, hermetic_chat::ChatEvent::Deleted(deleted));
    }

    /// Somebody changes a message of their own in private.
    pub fn edits(&self, user: impl Into<UserId>, message: &MessageId, text: &str) -> UpdateNumber {
        let update = self.0.events.next_number();
        let speech = Speech::by(user, text);
        let account = self.0.account.clone();
        let edited = speech.incoming(account, update, message.clone(), self.now());
        self.0
            .events
            .push(update, hermetic_chat::ChatEvent::Edited(edited));
        update
    }

    /// The platform says late that a reply did not arrive.
    pub fn loses(&self, key: SendKey) {
        let update = self.0.events.next_number();
        let lost = UndeliveredReply {
            account: self.0.account.clone(),
            key,
            why: "nobody is there".to_owned(),
        };
        self.0
            .events
            .push(update, hermetic_chat::ChatEvent::Undelivered(lost));
    }

    /// The message that an event brought.
    ///
    /// # Panics
    ///
    /// If it brought none.
    pub fn message_of(&self, update: UpdateNumber) -> MessageId {
        let message = self.0.events.message_of(update);
        #[expect(clippy::expect_used, reason = "a test that asks in vain has failed")]
        message.expect("an event that is a message")
    }

    /// The platform hands an event over once more, as one does that doubts.
    pub fn hands_over_again(&self, update: UpdateNumber) {
        self.0.events.hand_over_again(update);
    }

    /// Whether the receipt of an event was signed.
    pub fn is_signed(&self, update: UpdateNumber) -> bool {
        self.0.events.is_signed(update)
    }

    /// Waits until the receipt of every event is signed.
    pub async fn all_signed(&self) {
        patiently("every receipt is signed", self.0.events.all_signed()).await;
    }

    /// The next use of this operation fails so.
    pub fn fail_next(&self, operation: Operation, fault: Fault) {
        self.0.faults.add(operation, fault);
    }

    /// Waits until an operation was begun so often, whatever became of it.
    pub async fn tried(&self, operation: Operation, times: usize) {
        let tried = self.0.faults.tried(operation, times);
        patiently(&format!("{operation:?} is tried {times} times"), tried).await;
    }

    /// Lets everything go on that hangs by [`Fault::Hang`].
    pub fn release(&self) {
        self.0.faults.release();
    }

    /// Everything that was sent so far.
    pub fn record(&self) -> Record {
        self.0.record.borrow().clone()
    }

    /// The messages of a chat, once there are so many.
    pub async fn messages(&self, chat: impl Into<ChatId>, count: usize) -> Vec<SentMessage> {
        let chat = chat.into();
        let there = |record: &Record| record.messages_in(&chat).len() >= count;
        self.wait_for(&format!("{count} messages in {chat}"), there)
            .await
            .messages_in(&chat)
    }

    /// The first message of a chat beyond the `seen` ones.
    pub async fn await_reply(&self, chat: impl Into<ChatId>, seen: usize) -> SentMessage {
        self.messages(chat, seen + 1).await.swap_remove(seen)
    }

    /// The record, once it is so.
    ///
    /// # Panics
    ///
    /// If it does not become so in time.
    pub async fn wait_for(&self, what: &str, so: impl FnMut(&Record) -> bool) -> Record {
        let mut record = self.0.record.subscribe();
        match timeout(PATIENCE, record.wait_for(so)).await {
            Ok(Ok(seen)) => seen.clone(),
            _ => waited_in_vain(what, &self.record()),
        }
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    fn change<R>(&self, change: impl FnOnce(&mut Record) -> R) {
        self.0.record.send_modify(|record| drop(change(record)));
    }

    fn upload(&self, id: &AttachmentId) -> Option<Bytes> {
        self.0.record.borrow().uploads.get(id).cloned()
    }
}

impl Shared {
    /// People's messages and ours are numbered in one row, as platforms do it.
    fn next_message(&self) -> MessageId {
        let mut number = 0;
        self.record.send_modify(|record| {
            record.last_message += 1;
            number = record.last_message;
        });
        MessageId::from(number)
    }
}

async fn patiently(what: &str, wait: impl Future<Output = ()>) {
    if timeout(PATIENCE, wait).await.is_err() {
        waited_in_vain(what, &());
    }
}

#[expect(clippy::panic, reason = "a test that waits in vain has failed")]
fn waited_in_vain(what: &str, seen: &dyn std::fmt::Debug) -> ! {
    panic!("waited in vain for this: {what}; seen: {seen:#?}")
}

#[cfg(test)]
mod tests;
