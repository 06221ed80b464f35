//! What an earlier process left open.

use std::sync::Arc;

use futures::FutureExt;
use hermetic_store::{MessageEnd, OpenMessage, RowOwner, StoreError};
use hermetic_types::IncomingMessage;

use super::AcceptedMessage;
use crate::conversation::journal::HistoryLine;
use crate::life::MessageArrival;
use crate::{BusyMode, Gateway};

impl Gateway {
    /// Replies first, then messages in the order they came. Each is let in anew: who lost access
    /// meanwhile is not answered.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<(), StoreError> {
        // Not worth a start: on a full disk it fails, and room may come.
        if let Err(error) = self.forget_old().await {
            tracing::warn!(%error, "what is over for long was not forgotten");
        }
        if self.sharing.is_some() {
            // Nothing is under the name of a process that has just begun: what others left is adopted.
            return Ok(());
        }
        // Before any message is taken up: a reply that one of those writes would be found here as
        // one that an earlier process left, and be sent twice.
        let replies = || self.outbox.take_over().boxed();
        let replies = self
            .once_there_is_room("take replies over", replies)
            .await?;
        let open = self.inbox.open(RowOwner::ThisGateway).await?;
        let processes = self.toolsets.background().take_up().await?;
        if replies > 0 || processes > 0 || !open.is_empty() {
            tracing::info!(
                replies,
                processes,
                messages = open.len(),
                "taking up what was left open"
            );
        }
        for open in open {
            let take_up = || self.take_up(open.clone()).boxed();
            let taken = self
                .once_there_is_room("take a message up", take_up)
                .await?;
            if let Some(message) = taken {
                // In order: a message that waits must not interrupt the one before it.
                self.hand_over(message, BusyMode::Queue);
            }
        }
        Ok(())
    }

    /// One that another gateway wrote down; `is_adopted` if that is gone, and a turn may have heard it already.
    pub(crate) async fn take_up_found(
        &self,
        open: OpenMessage,
        is_adopted: bool,
    ) -> Result<Option<AcceptedMessage>, StoreError> {
        if is_adopted {
            return self.take_up(open).await;
        }
        self.let_in(open).await
    }

    async fn take_up(&self, open: OpenMessage) -> Result<Option<AcceptedMessage>, StoreError> {
        let end = |end, note| self.inbox.end(open.row, end, Some(note), self.now());
        // Only one that no turn was ever begun for: any other has lines of its own in the history,
        // which say nothing about who heard it.
        if open.attempts == 0 && self.was_told(&open).await? {
            end(MessageEnd::Answered, "told to a turn that was at work").await?;
            return Ok(None);
        }
        self.let_in(open).await
    }

    async fn let_in(&self, open: OpenMessage) -> Result<Option<AcceptedMessage>, StoreError> {
        let Ok(incoming) = serde_json::from_str::<IncomingMessage>(&open.payload) else {
            let (end, note) = (MessageEnd::Failed, Some("cannot be read any more"));
            self.inbox.end(open.row, end, note, self.now()).await?;
            return Ok(None);
        };
        self.accept(incoming, MessageArrival::Restart(open)).await
    }

    /// Whether a turn of another message heard this one.
    async fn was_told(&self, open: &OpenMessage) -> Result<bool, StoreError> {
        let lines = self.history.recent(&open.conversation, 500).await?;
        let mut lines = lines
            .iter()
            .filter_map(|line| HistoryLine::read(line, &self.redactor));
        Ok(lines.any(|line| line.row == open.row.0))
    }
}
