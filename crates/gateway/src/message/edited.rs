//! A person changes what they wrote.
//!
//! While the message waits for its turn, the new words take its place. While it is answered they are said
//! as a correction, which does whatever any message does that comes meanwhile: interrupt, wait or steer.
//! Once it is answered nothing happens: most changes after an answer mend a typing error, and a second
//! answer to each would be noise.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_chat::Receipt;
use hermetic_store::StoreError;
use hermetic_types::{AccountId, ChatId, IncomingMessage};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::ChatCommand;
use crate::Gateway;
use crate::conversation::EditOutcome;
use crate::life::{MessageArrival, in_full};
use crate::run::GatewaySignal;

impl Gateway {
    /// The receipt is signed when the new words are written down; an edit that could not be comes again,
    /// where the platform tells it twice.
    pub(crate) fn hear_edit(self: &Arc<Self>, edited: IncomingMessage, receipt: Receipt) {
        self.hear_edit_from(edited, receipt, EditSource::Chat);
    }

    /// The same for one that another gateway heard, and whose message it does not have.
    pub(crate) fn hear_edit_of_others(self: &Arc<Self>, edited: IncomingMessage, receipt: Receipt) {
        self.hear_edit_from(edited, receipt, EditSource::Gateway);
    }

    fn hear_edit_from(
        self: &Arc<Self>,
        edited: IncomingMessage,
        receipt: Receipt,
        source: EditSource,
    ) {
        let gateway = Arc::clone(self);
        let (before, done) = self.edits.join(&edited);
        self.turns.spawn(async move {
            if let Some(before) = before {
                // Also where it failed: what counts is that it ended.
                let _ = before.await;
            }
            // Held, and dropped whichever way this ends, a panic included: otherwise the next edit
            // would wait for ever.
            let _done = done;
            if let Err(error) = gateway.take_edit(edited, receipt, source).await {
                tracing::error!(error = %in_full(&error), "an edit could not be written down");
            }
        });
    }

    async fn take_edit(
        self: &Arc<Self>,
        edited: IncomingMessage,
        receipt: Receipt,
        source: EditSource,
    ) -> Result<(), StoreError> {
        // Looked for first: whose message is in no conversation is not let in, nor offered anything.
        let Some(conversation) = self.conversations.find(&edited).await else {
            if let (Some(sharing), EditSource::Chat) = (&self.sharing, source) {
                let signal = GatewaySignal::Edited(Box::new(edited));
                sharing.signal_others(&signal).await?;
            }
            receipt.stored();
            return Ok(());
        };
        let Ok(admitted) = self.access.admit(edited.clone(), self.now()).await else {
            receipt.stored();
            return Ok(());
        };
        match self.conversations.edit(&conversation, admitted).await {
            EditOutcome::Replaced(message) => {
                // In memory first, because the turn may begin at any moment. Killed in between, the
                // next start has the old words, and the edit comes again where the platform tells
                // it twice.
                message.rewrite(&self.inbox).await?;
                receipt.stored();
            }
            EditOutcome::AtWork => {
                let correction = correction(edited);
                let accepted = self
                    .accept(correction, MessageArrival::Chat(receipt))
                    .await?;
                if let Some(message) = accepted {
                    self.hand_over(message, self.settings.busy);
                }
            }
            EditOutcome::TooLate => receipt.stored(),
        }
        Ok(())
    }
}

/// Who heard of an edit. What another gateway passed on is passed on to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditSource {
    Chat,
    Gateway,
}

/// Edits in one chat are taken one after the other, as they were heard: of two changes of one message the later
/// words count, in memory and on disk. Other chats do not wait for them.
#[derive(Debug, Default)]
pub(crate) struct EditOrder(Mutex<HashMap<(AccountId, ChatId), oneshot::Receiver<()>>>);

impl EditOrder {
    /// What ends with the edit before this one, and what ends with this one when it is dropped.
    fn join(
        &self,
        edited: &IncomingMessage,
    ) -> (Option<oneshot::Receiver<()>>, oneshot::Sender<()>) {
        let (done, ended) = oneshot::channel();
        let chat = (edited.account.clone(), edited.place.chat.clone());
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Here, where one is added, because nobody comes by when the last edit of a chat has ended.
        last.retain(|_, ended| matches!(ended.try_recv(), Err(TryRecvError::Empty)));
        (last.insert(chat, ended), done)
    }
}

/// What somebody means who changes a message that is being answered. The files that hang on it are there
/// already. A command stays one: who makes `/stop` of their words wants to stop.
fn correction(mut edited: IncomingMessage) -> IncomingMessage {
    edited.attachments.clear();
    if ChatCommand::read(&edited.text).is_none() {
        edited.text = format!(
            "[I changed the message that you are answering. It reads now:]\n{}",
            edited.text
        );
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_lab::TestLab;

    #[tokio::test]
    async fn an_edit_waits_for_the_one_before_it_in_its_chat_and_for_no_other() {
        let (lab, edits) = (TestLab::new().await, EditOrder::default());
        let alice = lab.says(7, "hi").await.said().clone();
        let bob = lab.says(8, "hi").await.said().clone();
        let (nothing, first) = edits.join(&alice);
        assert!(nothing.is_none());
        let (nothing, _others) = edits.join(&bob);
        assert!(nothing.is_none(), "somebody else's edit holds it up");
        let (before, second) = edits.join(&alice);
        let mut before = before.unwrap();
        assert!(
            before
                .try_recv()
                .is_err_and(|error| error == TryRecvError::Empty)
        );
        drop(first);
        assert!(before.await.is_err(), "it ends without a word");
        drop(second);
        let (nothing, _third) = edits.join(&alice);
        assert!(nothing.is_none());
    }
}
