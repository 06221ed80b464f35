//! The agent's journal, in the store.
//!
//! A line of the history names the message it came from, so that a start after a crash can tell
//! whether a turn had begun to speak.

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{CallId, JournalError, Message, StoredMessage, ToolCall, TurnJournal};
use hermetic_redact::Redactor;
use hermetic_store::{HistoryRows, MessageRow, StoreError, ToolCalls};
use hermetic_types::{ConversationKey, SharedClock};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::TurnControl;
use crate::Gateway;
use crate::message::AcceptedMessage;

#[derive(Debug)]
pub(crate) struct StoreJournal {
    history: HistoryRows,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryLine {
    /// The message it came from; 0 for one that was typed.
    pub row: i64,
    pub message: Message,
}

/// The same as it was kept.
#[derive(Deserialize)]
struct StoredLine {
    row: i64,
    message: StoredMessage,
}

impl HistoryLine {
    /// A line as the history keeps it. `None` if nobody can read it.
    pub fn read(text: &str, redactor: &Redactor) -> Option<Self> {
        let stored: StoredLine = serde_json::from_str(text).ok()?;
        Some(Self {
            row: stored.row,
            message: stored.message.redacted(redactor),
        })
    }
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
        let line = HistoryLine {
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

impl TurnJournal for StoreJournal {
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
            self.tool_calls
                .end(self.row, call.as_str(), &result.text(), self.clock.now())
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

#[cfg(test)]
mod tests {
    use hermetic_agent::AssistantPart;
    use hermetic_redact::RedactorSettings;

    use super::*;

    /// What the store makes of a history that was written before messages had parts.
    const CONVERTED: &str = include_str!("../../../store/fixtures/history_with_parts.jsonl");

    #[test]
    fn a_conversation_of_before_parts_reads_as_it_was_said() {
        let redactor = Redactor::new([], RedactorSettings::default());
        let read = |line| HistoryLine::read(line, &redactor).expect("a line of the history");
        let lines: Vec<HistoryLine> = CONVERTED.lines().map(read).collect();
        for (line, text) in lines.iter().zip(CONVERTED.lines()) {
            assert_eq!(serde_json::to_string(line).unwrap(), text);
        }
        let said: Vec<_> = lines.iter().map(|line| (line.row, &line.message)).collect();
        let question = "what is in the log?\n> quoted \"words\" \\ and ünïcode \0 \u{2028}";
        assert_eq!(said[0], (7, &Message::user(question)));
        assert_eq!(
            said[1].1,
            &calls(
                "",
                &[
                    ("call_a", "terminal", r#"{"command":"cat \"a b\""}"#),
                    ("call_b", "read_file", r#"{"path":"#),
                ]
            )
        );
        assert_eq!(said[2].1, &result("call_a", "[output of terminal]\nline\n"));
        assert_eq!(said[3].1, &result("call_b", ""));
        assert_eq!(
            said[4].1,
            &calls("I look once more.", &[("call_c", "terminal", "{}")])
        );
        assert_eq!(said[5].1, &result("call_c", "ok"));
        assert_eq!(said[6], (7, &Message::assistant("It is empty.")));
        assert_eq!(said[7], (0, &Message::user("")));
        assert_eq!(said[8], (0, &Message::assistant("")));
    }

    fn result(call: &str, text: &'static str) -> Message {
        Message::tool(CallId::new(call), text)
    }

    fn calls(text: &str, calls: &[(&str, &str, &str)]) -> Message {
        let text = (!text.is_empty()).then(|| AssistantPart::text(text));
        let calls = calls.iter().map(|(id, name, arguments)| {
            AssistantPart::ToolCall(ToolCall {
                id: CallId::new(*id),
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
            })
        });
        Message::Assistant {
            parts: text.into_iter().chain(calls).collect(),
        }
    }
}
