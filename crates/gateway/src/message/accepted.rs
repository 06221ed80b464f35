//! A message that was let in and is written down.

use std::sync::{Arc, OnceLock};

use hermetic_access::Admitted;
use hermetic_chat::ReplyRule;
use hermetic_store::{AcceptedRow, InboxRows, MessageRow, OpenMessage, StoreError};
use hermetic_types::{ChatKind, ConversationKey, IncomingMessage, MessageId, Timestamp};
use tokio::time::Instant;

/// The proof that a message survives us. Only this module makes one.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedMessage {
    row: MessageRow,
    /// How often a turn was begun for it before we got it.
    begun: u32,
    admitted: Admitted,
    /// The message of ours in which its answer grows.
    draft: Arc<OnceLock<MessageId>>,
    /// Since when it waits for its turn.
    since: Instant,
    /// Messages of its conversation that have to be handed over before it, where another gateway may have written
    /// one of them down.
    earlier: Vec<MessageRow>,
}

impl AcceptedMessage {
    /// `None` if it was there already, because the platform sent it twice, or if it is another gateway's.
    pub(crate) async fn write(
        inbox: &InboxRows,
        admitted: Admitted,
        now: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        let said = admitted.said();
        // Plain data of strings and numbers always serialises.
        let payload = serde_json::to_string(said).unwrap_or_default();
        let accepted = inbox
            .accept_for_holder(
                &said.account.to_string(),
                said.update.as_str(),
                admitted.conversation(),
                &payload,
                now,
            )
            .await?;
        let AcceptedRow::Here { row, earlier } = accepted else {
            return Ok(None);
        };
        Ok(Some(Self {
            row,
            begun: 0,
            admitted,
            draft: Arc::default(),
            since: Instant::now(),
            earlier,
        }))
    }

    /// A moment of a job, which was written down when it was claimed.
    pub(crate) fn claimed(row: MessageRow, admitted: Admitted) -> Self {
        Self {
            row,
            begun: 0,
            admitted,
            draft: Arc::default(),
            since: Instant::now(),
            earlier: Vec::new(),
        }
    }

    /// Whether this is a job's moment, and nobody is there.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.conversation().job().is_some()
    }

    /// One that an earlier process wrote down. It was let in again, by the rules of today.
    pub(crate) fn found(open: &OpenMessage, admitted: Admitted) -> Self {
        let draft = open.draft.clone().and_then(|id| MessageId::new(id).ok());
        Self {
            row: open.row,
            begun: open.attempts,
            admitted,
            draft: Arc::new(draft.map_or_else(OnceLock::new, OnceLock::from)),
            since: Instant::now(),
            earlier: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn behind(self, earlier: &[&Self]) -> Self {
        Self {
            earlier: earlier.iter().map(|message| message.row).collect(),
            ..self
        }
    }

    pub(crate) fn earlier(&self) -> &[MessageRow] {
        &self.earlier
    }

    /// Whether this is that message of a chat, as its sender wrote it.
    pub(crate) fn is_written_as(&self, message: &MessageId) -> bool {
        self.said().message == *message
            && !super::notices::is_notice(self.said())
            && !self.is_scheduled()
    }

    /// The same message with other words: whoever wrote it changed it before its turn came.
    pub(crate) fn with_words_of(&self, admitted: Admitted) -> Self {
        Self {
            admitted,
            ..self.clone()
        }
    }

    /// Writes down what it says now.
    pub(crate) async fn rewrite(&self, inbox: &InboxRows) -> Result<(), StoreError> {
        let payload = serde_json::to_string(self.said()).unwrap_or_default();
        inbox.rewrite(self.row, &payload).await
    }

    pub(crate) fn draft(&self) -> Option<&MessageId> {
        self.draft.get()
    }

    /// Its answer has begun to show there. A crash from now on goes on in the same message.
    pub(crate) async fn note_draft(
        &self,
        inbox: &InboxRows,
        draft: &MessageId,
    ) -> Result<(), StoreError> {
        // One turn at a time works on a message.
        let _ = self.draft.set(draft.clone());
        // The note on the disk is only for a crash: where it fails, this process goes on in the
        // same message.
        inbox.note_draft(self.row, draft.as_str()).await
    }

    /// The message that an answer quotes: in a group somebody else may have spoken meanwhile, and where
    /// each message waits for its own answer it has to be named.
    pub(crate) fn to_quote(&self, replies: ReplyRule) -> Option<&MessageId> {
        let said = self.said();
        let named = said.place.kind != ChatKind::Dm || replies == ReplyRule::OneForEach;
        // A job's message is the one it was made by, long ago.
        (named && !self.is_scheduled()).then_some(&said.message)
    }

    pub(crate) fn row(&self) -> MessageRow {
        self.row
    }

    /// Since when it waits for its turn in this process.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn was_begun(&self) -> bool {
        self.begun > 0
    }

    pub(crate) fn conversation(&self) -> &ConversationKey {
        self.admitted.conversation()
    }

    pub(crate) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    pub(crate) fn said(&self) -> &IncomingMessage {
        self.admitted.said()
    }

    /// What the model is told was said.
    pub(crate) fn for_model(&self) -> String {
        let said = self.said();
        let mut text = String::new();
        if let Some(quoted) = said
            .reply_to
            .as_ref()
            .filter(|quoted| !quoted.text.is_empty())
        {
            let whose = if quoted.from_us {
                "your message"
            } else {
                "the message"
            };
            // Line by line: words of somebody else must not end the quotation themselves.
            text.push_str(&format!("[in reply to {whose}:]\n"));
            for line in quoted.text.lines() {
                text.push_str(&format!("> {line}\n"));
            }
        }
        text.push_str(&said.text);
        text
    }
}
