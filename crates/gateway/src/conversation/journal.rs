//! The agent's journal, in the store.
//!
//! A line of the history names the message it came from, so that a start after a crash can tell
//! whether a turn had begun to speak.

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{CallId, Journal, JournalError, Message, ToolCall};
use hermetic_store::{History, MessageRow, StoreError, ToolCalls};
use hermetic_types::{ConversationKey, SharedClock};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::TurnControl;
use crate::Gateway;
use crate::message::AcceptedMessage;

#[derive(Debug)]
pub(crate) struct StoreJournal {
    history: History,
    tool_calls: ToolCalls,
    conversation: ConversationKey,
    row: MessageRow,
    control: TurnControl,
    clock: SharedClock,
    /// Whether the message itself is in the history: every later one of a person was said into
    /// the running turn.
    opened: AtomicBool,
}

/// One line of the history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The message it came from; 0 for one that was typed.
    pub row: i64,
    pub message: Message,
}

impl StoreJournal {
    /// The journal of one message's turn. `opened` if its words are in the history already.
    pub(crate) fn new(
        gateway: &Gateway,
        message: &AcceptedMessage,
        control: TurnControl,
        opened: bool,
    ) -> Self {
        Self {
            history: gateway.history.clone(),
            tool_calls: gateway.tool_calls.clone(),
            conversation: message.conversation().clone(),
            row: message.row(),
            control,
            clock: Arc::clone(&gateway.clock),
            opened: AtomicBool::new(opened),
        }
    }

    async fn append(&self, row: MessageRow, message: &Message) -> Result<(), JournalError> {
        let line = Line {
            row: row.0,
            message: message.clone(),
        };
        let text = serde_json::to_string(&line).map_err(|error| JournalError {
            source: error.into(),
        })?;
        let appended = self
            .history
            .append(&self.conversation, &text, self.clock.now())
            .await;
        appended.map_err(journal_error)
    }

    /// Whose words these are.
    fn speaker(&self, message: &Message) -> MessageRow {
        let from_person = matches!(message, Message::User { .. });
        if from_person && self.opened.swap(true, Ordering::Relaxed) {
            return self
                .control
                .next_steering_heard()
                .map_or(self.row, |steering_message| steering_message.row());
        }
        self.row
    }
}

impl Journal for StoreJournal {
    fn said<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), JournalError>> {
        self.append(self.speaker(message), message).boxed()
    }

    fn tool_about_to_run<'a>(
        &'a self,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            self.tool_calls
                .begin(
                    self.row,
                    call.id.as_str(),
                    &call.name,
                    &call.arguments,
                    self.clock.now(),
                )
                .await
                .map_err(journal_error)
        }
        .boxed()
    }

    fn tool_ended<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Message,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            // The history first: killed between the two, the result is known all the same.
            self.append(self.row, result).await?;
            let text = match result {
                Message::Tool { content, .. } => content.as_str(),
                _ => "",
            };
            self.tool_calls
                .end(self.row, call.as_str(), text, self.clock.now())
                .await
                .map_err(journal_error)
        }
        .boxed()
    }
}

fn journal_error(error: StoreError) -> JournalError {
    JournalError {
        source: error.into(),
    }
}
