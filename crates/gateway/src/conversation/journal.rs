//! The agent's journal, in the store.
//!
//! A line of the history names the message it came from, so that a start after a crash can tell
//! whether a turn had begun to speak.

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{
    CallId, HistorySummary, JournalError, Message, StoredMessage, StoredSummary, ToolCall,
    TurnJournal,
};
use hermetic_redact::Redactor;
use hermetic_store::{
    HistoryRows, InboxRows, MessageEnd, MessageRow, StoreError, ToolCalls, ViewBounds,
};
use hermetic_types::{ConversationKey, SharedClock, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::TurnControl;
use crate::Gateway;
use crate::message::AcceptedMessage;

#[derive(Debug)]
pub(crate) struct StoreJournal {
    history: HistoryRows,
    tool_calls: ToolCalls,
    inbox: InboxRows,
    conversation: ConversationKey,
    row: MessageRow,
    control: TurnControl,
    clock: SharedClock,
    /// Whether the message itself is in the history: every later one of a person was said into
    /// the running turn.
    opened: AtomicBool,
    numbers: LineNumbers,
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

/// A conversation as it was left.
#[derive(Debug, Default)]
pub struct ReadHistory {
    /// What stands for all before the lines.
    pub summary: Option<HistorySummary>,
    pub lines: Vec<HistoryLine>,
    /// Where the lines stand in the store.
    pub numbers: LineNumbers,
    /// How many lines before these were not read.
    pub left_out: usize,
}

impl ReadHistory {
    /// The conversation, without lines that nobody can read.
    pub async fn of(
        history: &HistoryRows,
        conversation: &ConversationKey,
        redactor: &Redactor,
    ) -> Result<Self, StoreError> {
        let view = history.view(conversation, ViewBounds::default()).await?;
        let mut read = Self {
            summary: view.summary.and_then(|text| {
                let stored: StoredSummary = serde_json::from_str(&text).ok()?;
                Some(stored.redacted(redactor))
            }),
            left_out: view.left_out,
            ..Self::default()
        };
        for line in view.lines {
            // One that nobody can read has no number here either: the agent counts the lines that
            // it was given, and both counts have to agree when it summarises.
            if let Some(found) = HistoryLine::read(&line.text, redactor) {
                read.numbers.note(&found.message, line.number);
                read.lines.push(found);
            }
        }
        Ok(read)
    }
}

/// The numbers of a conversation's lines, but for results of tools: those follow their calls.
#[derive(Debug, Default)]
pub struct LineNumbers(Mutex<Vec<i64>>);

impl LineNumbers {
    /// A message stands in this line.
    pub fn note(&self, message: &Message, number: i64) {
        if !matches!(message, Message::Tool { .. }) {
            self.lock().push(number);
        }
    }

    /// The conversation was read anew.
    pub fn take_over(&self, read: Self) {
        let read = read.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.lock() = read;
    }

    /// The last line before the last `kept` of them.
    pub fn before_last(&self, kept: usize) -> Option<i64> {
        let numbers = self.lock();
        let first_kept = numbers.len().checked_sub(kept)?;
        match numbers.get(first_kept) {
            // Not the number before it in this list: results of tools stand between the two in the
            // store and are not in the list.
            Some(number) => Some(number - 1),
            None => numbers.last().copied(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a summary stand for all but the last `kept` lines that are no results of tools.
pub async fn write_summary(
    (history, conversation): (&HistoryRows, &ConversationKey),
    numbers: &LineNumbers,
    (summary, kept): (&HistorySummary, usize),
    now: Timestamp,
) -> Result<(), JournalError> {
    let broken = |source: Box<dyn std::error::Error + Send + Sync>| JournalError { source };
    let up_to = numbers
        .before_last(kept)
        .ok_or_else(|| broken("the lines to be summarised are not known".into()))?;
    let text = serde_json::to_string(summary).map_err(|error| broken(error.into()))?;
    let written = history.compact(conversation, up_to, &text, now).await;
    written.map_err(journal_error)
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
        numbers: LineNumbers,
        opened: bool,
    ) -> Self {
        Self {
            history: gateway.history.clone(),
            tool_calls: gateway.tool_calls.clone(),
            inbox: gateway.inbox.clone(),
            conversation: message.conversation().clone(),
            row: message.row(),
            control,
            clock: Arc::clone(&gateway.clock),
            opened: AtomicBool::new(opened),
            numbers,
        }
    }

    async fn append(&self, row: MessageRow, message: &Message) -> Result<(), JournalError> {
        let text = line_of(row, message)?;
        let appended = self
            .history
            .append(&self.conversation, &text, self.clock.now())
            .await;
        self.numbers.note(message, appended.map_err(journal_error)?);
        Ok(())
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
            // One write for the history and the end of the call: killed between two, one of them would not
            // know of the result.
            let (line, text) = (line_of(self.row, result)?, result.text());
            let ended = self.tool_calls.end(
                (self.row, call.as_str()),
                &text,
                (&self.conversation, &line),
                self.clock.now(),
            );
            self.numbers
                .note(result, ended.await.map_err(journal_error)?);
            // One call runs at a time, so this result is of the one that asked.
            end_answers(
                &self.inbox,
                &self.control,
                MessageEnd::Answered,
                &self.clock,
            )
            .await;
            Ok(())
        }
        .boxed()
    }

    fn compacted<'a>(
        &'a self,
        summary: &'a HistorySummary,
        kept: usize,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let place = (&self.history, &self.conversation);
        write_summary(place, &self.numbers, (summary, kept), self.clock.now()).boxed()
    }
}

/// Ends the messages that answered questions of a turn, once nothing is lost with them.
pub(super) async fn end_answers(
    inbox: &InboxRows,
    control: &TurnControl,
    end: MessageEnd,
    clock: &SharedClock,
) {
    for answer in control.take_answers() {
        let note = Some("the answer to a question of the agent");
        let ended = inbox.end(answer.row(), end, note, clock.now());
        if let Err(error) = ended.await {
            tracing::error!(row = answer.row().0, %error, "a message stays open");
        }
    }
}

/// A message as a line of the history.
fn line_of(row: MessageRow, message: &Message) -> Result<String, JournalError> {
    let line = HistoryLine {
        row: row.0,
        message: message.clone(),
    };
    serde_json::to_string(&line).map_err(|error| JournalError {
        source: error.into(),
    })
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

    #[test]
    fn a_summary_ends_before_the_first_line_that_stays() {
        let numbers = LineNumbers::default();
        assert_eq!(numbers.before_last(0), None);
        for (message, number) in [
            (Message::user("a"), 3),
            (calls("", &[("c", "terminal", "{}")]), 5),
            (result("c", "done"), 6),
            (Message::assistant("b"), 9),
        ] {
            numbers.note(&message, number);
        }
        assert_eq!(
            numbers.before_last(1),
            Some(8),
            "the result is folded with its call"
        );
        assert_eq!(numbers.before_last(2), Some(4));
        assert_eq!(numbers.before_last(0), Some(9));
        assert_eq!(numbers.before_last(4), None, "more than there are");
    }

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
