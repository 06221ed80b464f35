//! How many bytes a conversation has had, kept beyond the gateway's life.
//!
//! A budget is a conversation's, not a process's: a gateway that restarts, or a sandbox that idles away and
//! comes back, gives nobody a new one. Only the end of its sandbox (`/destroy`) does. What passed in the last second before a crash is
//! forgotten.

use std::sync::Arc;

use hermetic_egress::ConversationEgress;
use hermetic_store::{DocumentRows, ReplaceOutcome, StoreError};
use hermetic_types::ConversationKey;

/// Keeps what each conversation used of its budget.
#[derive(Clone, Debug)]
pub struct SpendingBook(DocumentRows);

/// Counts what one conversation used, and writes it down.
#[derive(Debug)]
pub(crate) struct SpendingSum {
    book: SpendingBook,
    conversation: Arc<ConversationEgress>,
    written: u64,
}

impl SpendingBook {
    pub fn in_store(documents: DocumentRows) -> Self {
        Self(documents)
    }

    /// The conversation goes on from what it has had. Where that cannot be learnt it has had everything.
    pub(crate) async fn resume(&self, conversation: &Arc<ConversationEgress>) -> SpendingSum {
        let key = conversation.key();
        let before = self.read(key).await.unwrap_or_else(|error| {
            tracing::error!(%error, conversation = %key, "its budget cannot be read, so it is spent");
            // A budget that cannot be read is spent: to begin anew would give another one with each
            // failure of the disk.
            u64::MAX
        });
        conversation.account().carry_over(before);
        SpendingSum {
            book: self.clone(),
            conversation: Arc::clone(conversation),
            written: before,
        }
    }

    /// It begins anew.
    pub(crate) async fn forget(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        match self.read(conversation).await? {
            0 => Ok(()),
            _ => self.write(conversation, 0).await,
        }
    }

    async fn read(&self, conversation: &ConversationKey) -> Result<u64, StoreError> {
        let found = self.0.load(&name(conversation)).await?;
        Ok(found.map_or(0, |document| document.body.parse().unwrap_or(u64::MAX)))
    }

    async fn write(&self, conversation: &ConversationKey, bytes: u64) -> Result<(), StoreError> {
        let (name, body) = (name(conversation), bytes.to_string());
        loop {
            // By its version, because an old port may still be writing what it counted while
            // `/destroy` begins anew.
            let version = self.0.load(&name).await?.map_or(0, |found| found.version);
            if self.0.replace(&name, &body, version).await? == ReplaceOutcome::Yes {
                return Ok(());
            }
        }
    }
}

impl SpendingSum {
    pub(crate) fn is_behind(&self) -> bool {
        self.conversation.account().bytes() > self.written
    }

    /// Writes the sum down if it has grown.
    pub(crate) async fn save(&mut self) {
        if !self.is_behind() {
            return;
        }
        let (key, now) = (self.conversation.key(), self.conversation.account().bytes());
        match self.book.write(key, now).await {
            Ok(()) => self.written = now,
            Err(error) => {
                tracing::error!(%error, conversation = %key, "its budget could not be written down");
            }
        }
    }
}

fn name(conversation: &ConversationKey) -> String {
    format!("egress-spent:{conversation}")
}
