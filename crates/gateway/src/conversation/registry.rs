//! Which conversations are live.
//!
//! A conversation is served by one task at a time. Everything that concerns it goes into that task's
//! inbox; a task is started for the first message and ends when nothing is left to do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_access::Admitted;
use hermetic_types::{AccountId, ChatId, ConversationKey, DeletedMessage, IncomingMessage};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::task::{ConversationEvent, ConversationTask};
use super::{EditOutcome, InterruptionReport};
use crate::message::AcceptedMessage;
use crate::{BusyMode, Gateway};

/// Events that may wait for a conversation's task, which only sorts them: a full inbox is a flood.
const INBOX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct ConversationRegistry(Mutex<LiveConversations>);

type LiveConversations = HashMap<ConversationKey, LiveConversation>;

#[derive(Debug)]
struct LiveConversation {
    inbox: mpsc::Sender<ConversationEvent>,
    /// Where all of its messages were said.
    chat: (AccountId, ChatId),
}

/// What goes on in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversationActivity {
    /// A turn or a command runs.
    pub(crate) at_work: bool,
    /// Messages that wait.
    pub(crate) waiting: usize,
}

impl ConversationRegistry {
    /// Hands a message to its conversation, which is started if it is not live. The message comes back
    /// if the inbox is full.
    pub(crate) fn hand_over(
        &self,
        gateway: &Arc<Gateway>,
        message: AcceptedMessage,
        busy: BusyMode,
    ) -> Result<(), Box<AcceptedMessage>> {
        let mut live = self.lock();
        // A task that panicked left without retiring; the next message starts another.
        if live
            .get(message.conversation())
            .is_some_and(|live| live.inbox.is_closed())
        {
            live.remove(message.conversation());
        }
        let live = live
            .entry(message.conversation().clone())
            .or_insert_with(|| {
                let (sender, receiver) = mpsc::channel(INBOX);
                let task = ConversationTask::new(Arc::clone(gateway), &message, receiver);
                gateway.turns.spawn(task.run());
                let said = message.said();
                LiveConversation {
                    inbox: sender,
                    chat: (said.account.clone(), said.place.chat.clone()),
                }
            });
        // Sent under the lock: a task that ends looks into its inbox under it, too, so that no message
        // is left in the inbox of a task that is gone.
        let event = ConversationEvent::Message(Box::new(message), busy);
        // Not awaited, for two reasons: a lock is held, and whoever hands over listens to all
        // platforms.
        live.inbox
            .try_send(event)
            .map_err(|error| match error.into_inner() {
                ConversationEvent::Message(message, _) => message,
                _ => unreachable!("what was sent comes back"),
            })
    }

    /// Interrupts what runs there.
    pub(crate) async fn stop(&self, conversation: &ConversationKey) -> InterruptionReport {
        let answer = self.ask(conversation, ConversationEvent::Stop).await;
        answer.unwrap_or_default()
    }

    /// What a `/stop` of this conversation met.
    pub(crate) async fn stop_report(&self, conversation: &ConversationKey) -> InterruptionReport {
        let answer = self.ask(conversation, ConversationEvent::StopReport).await;
        answer.unwrap_or_default()
    }

    /// A message was deleted. Who had a part in its chat is not known, so every conversation there hears
    /// of it. `tasks` wait for room where there is none.
    pub(crate) fn withdraw(&self, deleted: &DeletedMessage, tasks: &TaskTracker) {
        let live = self.lock();
        let is_there = |(account, chat): &(AccountId, ChatId)| {
            *account == deleted.account && *chat == deleted.chat
        };
        for conversation in live.values().filter(|live| is_there(&live.chat)) {
            let event = ConversationEvent::Deleted(deleted.message.clone());
            // Not awaited here either: whoever hears of it listens to all platforms.
            if let Err(TrySendError::Full(event)) = conversation.inbox.try_send(event) {
                let inbox = conversation.inbox.clone();
                // Whoever ends before it is heard has nothing left to withdraw.
                tasks.spawn(async move { inbox.send(event).await.ok() });
            }
        }
    }

    /// The conversation in which the message waits or is at work that this is a new wording of.
    pub(crate) async fn find(&self, edited: &IncomingMessage) -> Option<ConversationKey> {
        let there: Vec<_> = {
            let live = self.lock();
            let in_chat = live.iter().filter(|(_, live)| {
                live.chat.0 == edited.account && live.chat.1 == edited.place.chat
            });
            in_chat.map(|(key, _)| key.clone()).collect()
        };
        for conversation in there {
            let find = |answer| {
                let sender = edited.sender.id.clone();
                ConversationEvent::Find(edited.message.clone(), sender, answer)
            };
            if self.ask(&conversation, find).await == Some(true) {
                return Some(conversation);
            }
        }
        None
    }

    /// Gives a message other words there, if it is not too late.
    pub(crate) async fn edit(
        &self,
        conversation: &ConversationKey,
        edited: Admitted,
    ) -> EditOutcome {
        let event = |answer| ConversationEvent::Edited(Box::new(edited), answer);
        let outcome = self.ask(conversation, event).await;
        outcome.unwrap_or(EditOutcome::TooLate)
    }

    pub(crate) async fn activity(&self, conversation: &ConversationKey) -> ConversationActivity {
        let answer = self.ask(conversation, ConversationEvent::Describe).await;
        answer.unwrap_or_default()
    }

    /// How many are live.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Ends a conversation's task if nothing waits in its inbox. Called by that task alone.
    pub(super) fn retire(
        &self,
        conversation: &ConversationKey,
        inbox: &mpsc::Receiver<ConversationEvent>,
    ) -> bool {
        let mut live = self.lock();
        if !inbox.is_empty() {
            return false;
        }
        // Under the lock that `hand_over` sends under: no message can come between the look and
        // this.
        live.remove(conversation);
        true
    }

    /// Waits for room in the inbox, unlike a message. `None` if the conversation is not live, or ends
    /// before it hears this.
    async fn ask<T>(
        &self,
        conversation: &ConversationKey,
        event: impl FnOnce(oneshot::Sender<T>) -> ConversationEvent,
    ) -> Option<T> {
        // The lock ends with this line: the task needs it to retire, and may do so while this waits
        // for room in its inbox. What was sent then is dropped with the inbox, and the answer with
        // it.
        let inbox = self.lock().get(conversation)?.inbox.clone();
        let (sender, receiver) = oneshot::channel();
        inbox.send(event(sender)).await.ok()?;
        receiver.await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, LiveConversations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::{MessageId, Platform};

    use super::*;

    #[tokio::test]
    async fn a_deletion_waits_for_room_where_a_conversation_is_flooded() {
        let (registry, tasks) = (ConversationRegistry::default(), TaskTracker::new());
        let (inbox, mut heard) = mpsc::channel(1);
        let chat = (AccountId::from(Platform::Telegram), ChatId::from(7));
        let live = LiveConversation {
            inbox: inbox.clone(),
            chat: chat.clone(),
        };
        registry.lock().insert(ConversationKey::new("k"), live);
        let (answer, _asked) = oneshot::channel();
        let flood = ConversationEvent::Describe(answer);
        inbox.try_send(flood).unwrap();
        let deleted = DeletedMessage {
            account: chat.0,
            chat: chat.1,
            message: MessageId::new("3").unwrap(),
        };
        registry.withdraw(&deleted, &tasks);
        assert!(matches!(
            heard.recv().await,
            Some(ConversationEvent::Describe(_))
        ));
        tasks.close();
        tasks.wait().await;
        let event = heard.try_recv();
        assert!(
            matches!(&event, Ok(ConversationEvent::Deleted(id)) if *id == deleted.message),
            "{event:?}"
        );
    }
}
