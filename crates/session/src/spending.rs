//! How many bytes a conversation has had, kept beyond the gateway's life.
//!
//! A budget is a conversation's, not a process's: a gateway that restarts, or a sandbox that idles away and
//! comes back, gives nobody a new one. Only the end of its sandbox (`/destroy`) does. What passed in the last second before a crash is
//! forgotten.

use std::sync::Arc;

use hermetic_egress::{ConversationEgress, Egress};
use hermetic_store::{DocumentRows, ReplaceOutcome, StoreError};
use hermetic_types::ConversationKey;
use tokio::sync::Mutex;

use crate::Sandboxes;

/// Keeps what each conversation used of its budget.
#[derive(Clone, Debug)]
pub struct SpendingBook {
    rows: DocumentRows,
    /// Of several that end beside one conversation, each adds to what the others left.
    adding: Arc<Mutex<()>>,
}

/// What a conversation had used when something began to work beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBudget(u64);

/// Counts what one conversation used, and writes it down.
#[derive(Debug)]
pub(crate) struct SpendingSum {
    book: SpendingBook,
    conversation: Arc<ConversationEgress>,
    written: u64,
}

impl SpendingBook {
    pub fn in_store(documents: DocumentRows) -> Self {
        Self {
            rows: documents,
            adding: Arc::default(),
        }
    }

    /// Has `work` begin with what the conversation used, before its sandbox is there.
    async fn share(
        &self,
        egress: &Egress,
        conversation: &ConversationKey,
        work: &ConversationKey,
    ) -> Result<SharedBudget, StoreError> {
        let used = self.used(egress, conversation).await?;
        self.write(work, used).await?;
        Ok(SharedBudget(used))
    }

    /// Adds what `work` used to the conversation, while its sandbox is there.
    async fn add_up(
        &self,
        egress: &Egress,
        conversation: &ConversationKey,
        (work, before): (&ConversationKey, SharedBudget),
    ) -> Result<(), StoreError> {
        let more = self.used(egress, work).await?.saturating_sub(before.0);
        let _alone = self.adding.lock().await;
        let used = self.used(egress, conversation).await?.saturating_add(more);
        // Where it has a sandbox, that is what its port writes down from now on.
        egress.conversation(conversation).account().carry_over(used);
        self.write(conversation, used).await
    }

    async fn used(
        &self,
        egress: &Egress,
        conversation: &ConversationKey,
    ) -> Result<u64, StoreError> {
        let written = self.read(conversation).await?;
        Ok(written.max(egress.conversation(conversation).account().bytes()))
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
        let found = self.rows.load(&name(conversation)).await?;
        Ok(found.map_or(0, |document| document.body.parse().unwrap_or(u64::MAX)))
    }

    async fn write(&self, conversation: &ConversationKey, bytes: u64) -> Result<(), StoreError> {
        let (name, body) = (name(conversation), bytes.to_string());
        loop {
            // By its version, because an old port may still be writing what it counted while
            // `/destroy` begins anew.
            let version = self
                .rows
                .load(&name)
                .await?
                .map_or(0, |found| found.version);
            if self.rows.replace(&name, &body, version).await? == ReplaceOutcome::Yes {
                return Ok(());
            }
        }
    }
}

impl Sandboxes {
    /// Has what works beside a conversation, in a sandbox of its own, find as much of a budget of bytes as that one
    /// has left. Nothing where there is none.
    pub async fn share_budget(
        &self,
        conversation: &ConversationKey,
        work: &ConversationKey,
    ) -> Result<Option<SharedBudget>, StoreError> {
        match self.bounded_egress() {
            Some((egress, book)) => book.share(egress, conversation, work).await.map(Some),
            None => Ok(None),
        }
    }

    /// Counts what that used as the conversation's. Before its sandbox is destroyed, which forgets it.
    pub async fn add_up_budget(
        &self,
        conversation: &ConversationKey,
        work: &ConversationKey,
        before: Option<SharedBudget>,
    ) {
        let (Some((egress, book)), Some(before)) = (self.bounded_egress(), before) else {
            return;
        };
        if let Err(error) = book.add_up(egress, conversation, (work, before)).await {
            tracing::error!(%error, %conversation, "what a subtask used of its budget could not be written down");
        }
    }

    fn bounded_egress(&self) -> Option<(&Egress, &SpendingBook)> {
        let egress = self.egress.as_deref();
        let egress = egress.filter(|egress| egress.proxy().limits().budget.is_some())?;
        Some((egress, self.spending.as_ref()?))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermetic_egress::{EgressLimits, EgressRules, LogRecorder, Proxy, SystemResolver};
    use hermetic_store::Store;
    use hermetic_types::SystemClock;

    use super::*;

    #[tokio::test]
    async fn what_works_beside_a_conversation_uses_its_budget() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, SystemClock::shared());
        let book = SpendingBook::in_store(store.await.unwrap().documents());
        let limits = EgressLimits {
            budget: Some(1000),
            ..EgressLimits::default()
        };
        let proxy = Proxy::new(
            limits,
            Arc::new(SystemResolver::default()),
            Arc::new(LogRecorder),
        );
        let egress = Egress::new(proxy, EgressRules::default()).unwrap();
        let chat = ConversationKey::new("agent:main:telegram:dm:1");
        let (one, two) = (ConversationKey::new("one"), ConversationKey::new("two"));
        let living = egress.conversation(&chat);
        living.account().carry_over(300);
        let mut began = Vec::new();
        for work in [&one, &two] {
            let before = book.share(&egress, &chat, work).await.unwrap();
            let own = egress.conversation(work);
            book.resume(&own).await;
            assert_eq!(
                own.account().bytes(),
                300,
                "as much is left as the chat has left"
            );
            own.account().carry_over(350);
            began.push((work, before, own));
        }
        for (work, before, _own) in &began {
            book.add_up(&egress, &chat, (*work, *before)).await.unwrap();
        }
        assert_eq!(living.account().bytes(), 400);
        drop(living);
        assert_eq!(
            book.read(&chat).await.unwrap(),
            400,
            "also when its sandbox is gone"
        );
    }
}
