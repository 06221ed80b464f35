//! A person changes what they wrote.
//!
//! While the message waits for its turn, the new words take its place. While it is answered they are said
//! as a correction, which does whatever any message does that comes meanwhile: interrupt, wait or steer.
//! Once it is answered nothing happens: most changes after an answer mend a typing error, and a second
//! answer to each would be noise.

use std::sync::Arc;

use hermetic_chat::Receipt;
use hermetic_store::StoreError;
use hermetic_types::IncomingMessage;

use super::ChatCommand;
use crate::Gateway;
use crate::conversation::EditOutcome;
use crate::life::{MessageArrival, in_full};

impl Gateway {
    /// The receipt is signed when the new words are written down; an edit that could not be comes again,
    /// where the platform tells it twice.
    pub(crate) fn hear_edit(self: &Arc<Self>, edited: IncomingMessage, receipt: Receipt) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            if let Err(error) = gateway.take_edit(edited, receipt).await {
                tracing::error!(error = %in_full(&error), "an edit could not be written down");
            }
        });
    }

    async fn take_edit(
        self: &Arc<Self>,
        edited: IncomingMessage,
        receipt: Receipt,
    ) -> Result<(), StoreError> {
        // Looked for first: whose message is in no conversation is not let in, nor offered anything.
        let Some(conversation) = self.conversations.find(&edited).await else {
            receipt.stored();
            return Ok(());
        };
        let Ok(admitted) = self.access.admit(edited.clone(), self.now()).await else {
            receipt.stored();
            return Ok(());
        };
        match self.conversations.edit(&conversation, admitted).await {
            EditOutcome::Replaced(message) => {
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
