//! What was said, kept in the store under the session's name.

use std::collections::HashSet;
use std::future::ready;
use std::pin::Pin;

use hermetic_agent::{CallId, HistorySummary, JournalError, Message, ToolCall, TurnJournal, mend};
use hermetic_gateway::{HistoryLine, LineNumbers, ReadHistory, write_summary};
use hermetic_redact::Redactor;
use hermetic_store::{HistoryRows, StoreError};
use hermetic_types::{Clock as _, ConversationKey, SystemClock};

/// No message of a platform stands behind a line that was typed.
const TYPED: i64 = 0;

#[derive(Debug)]
pub(super) struct ChatHistory {
    history: HistoryRows,
    conversation: ConversationKey,
    redactor: Redactor,
    numbers: LineNumbers,
}

type JournalWrite<'a> = Pin<Box<dyn Future<Output = Result<(), JournalError>> + Send + 'a>>;

impl ChatHistory {
    pub(super) fn new(
        history: HistoryRows,
        conversation: ConversationKey,
        redactor: Redactor,
    ) -> Self {
        Self {
            history,
            conversation,
            redactor,
            numbers: LineNumbers::default(),
        }
    }

    /// What stands for the beginning of the conversation, and the rest of it.
    pub(super) async fn read(&self) -> Result<(Option<HistorySummary>, Vec<Message>), StoreError> {
        let read = ReadHistory::of(&self.history, &self.conversation, &self.redactor).await?;
        self.numbers.take_over(read.numbers);
        let messages: Vec<Message> = read.lines.into_iter().map(|line| line.message).collect();
        // Of a call without a result nobody knows whether it happened: it is written down first.
        let begun: HashSet<CallId> = messages
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.clone())
            .collect();
        Ok((read.summary, mend(messages, &begun)))
    }

    pub(super) async fn clear(&self) -> Result<(), StoreError> {
        self.history.clear(&self.conversation).await
    }

    async fn write(&self, message: &Message) -> Result<(), JournalError> {
        let line = HistoryLine {
            row: TYPED,
            message: message.clone(),
        };
        let broken = |source: Box<dyn std::error::Error + Send + Sync>| JournalError { source };
        let text = serde_json::to_string(&line).map_err(|error| broken(error.into()))?;
        let number = self
            .history
            .append(&self.conversation, &text, SystemClock.now())
            .await
            .map_err(|error| broken(error.into()))?;
        self.numbers.note(message, number);
        Ok(())
    }
}

impl TurnJournal for ChatHistory {
    fn said<'a>(&'a self, message: &'a Message) -> JournalWrite<'a> {
        Box::pin(self.write(message))
    }

    fn tool_about_to_run<'a>(&'a self, _: &'a ToolCall) -> JournalWrite<'a> {
        Box::pin(ready(Ok(())))
    }

    fn tool_ended<'a>(&'a self, _: &'a CallId, result: &'a Message) -> JournalWrite<'a> {
        Box::pin(self.write(result))
    }

    fn compacted<'a>(&'a self, summary: &'a HistorySummary, kept: usize) -> JournalWrite<'a> {
        let place = (&self.history, &self.conversation);
        let now = SystemClock.now();
        Box::pin(write_summary(place, &self.numbers, (summary, kept), now))
    }
}
