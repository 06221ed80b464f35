//! What was said, kept in the store under the session's name.

use std::collections::HashSet;
use std::future::ready;
use std::pin::Pin;

use hermetic_agent::{CallId, JournalError, Message, ToolCall, TurnJournal, mend};
use hermetic_gateway::HistoryLine;
use hermetic_redact::Redactor;
use hermetic_store::{HistoryRows, StoreError};
use hermetic_types::{Clock as _, ConversationKey, SystemClock};

/// How much of a conversation is read; the agent shows the model what fits.
const MOST_CHAT_LINES: u32 = 500;

/// No message of a platform stands behind a line that was typed.
const TYPED: i64 = 0;

#[derive(Debug)]
pub(super) struct ChatHistory {
    history: HistoryRows,
    conversation: ConversationKey,
    redactor: Redactor,
}

type Writing<'a> = Pin<Box<dyn Future<Output = Result<(), JournalError>> + Send + 'a>>;

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
        }
    }

    pub(super) async fn read(&self) -> Result<Vec<Message>, StoreError> {
        let lines = self
            .history
            .recent(&self.conversation, MOST_CHAT_LINES)
            .await?;
        let messages: Vec<Message> = lines
            .iter()
            .filter_map(|line| HistoryLine::read(line, &self.redactor))
            .map(|line| line.message)
            .collect();
        // Of a call without a result nobody knows whether it happened: it is written down first.
        let begun: HashSet<CallId> = messages
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.clone())
            .collect();
        Ok(mend(messages, &begun))
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
        self.history
            .append(&self.conversation, &text, SystemClock.now())
            .await
            .map_err(|error| broken(error.into()))
    }
}

impl TurnJournal for ChatHistory {
    fn said<'a>(&'a self, message: &'a Message) -> Writing<'a> {
        Box::pin(self.write(message))
    }

    fn tool_about_to_run<'a>(&'a self, _: &'a ToolCall) -> Writing<'a> {
        Box::pin(ready(Ok(())))
    }

    fn tool_ended<'a>(&'a self, _: &'a CallId, result: &'a Message) -> Writing<'a> {
        Box::pin(self.write(result))
    }
}
