//! `/undo` and `/retry`: the last turn is taken back, or taken once more.

use hermetic_agent::Message;
use hermetic_redact::Redacted;
use hermetic_store::{MessageEnd, MessageRow, StoreError, ViewBounds};

use super::journal::HistoryLine;
use super::{CommandError, TurnControl};
use crate::Gateway;
use crate::delivery::DeliveredReply;
use crate::life::HandleError;
use crate::message::AcceptedMessage;

/// The last turn of a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastTurn {
    /// The number of its first line.
    pub(super) begins: i64,
    /// The message that it answered.
    pub(super) row: i64,
    /// What was said, if that can be said again.
    words: Option<Message>,
}

impl LastTurn {
    /// All that the last message led to, whatever was said into it.
    fn of(lines: &[(i64, HistoryLine)]) -> Option<Self> {
        let row = lines.last()?.1.row;
        let (begins, first) = lines.iter().find(|(_, line)| line.row == row)?;
        let is_user = matches!(first.message, Message::User { .. });
        Some(Self {
            begins: *begins,
            row,
            words: is_user.then(|| first.message.clone()),
        })
    }
}

impl Gateway {
    pub(super) async fn last_turn(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Option<LastTurn>, StoreError> {
        let bounds = ViewBounds::default();
        let lines = self.history.lines(message.conversation(), bounds).await?;
        let read = lines.iter().filter_map(|line| {
            let found = HistoryLine::read(&line.text, &self.redactor)?;
            Some((line.number, found))
        });
        Ok(LastTurn::of(&read.collect::<Vec<_>>()))
    }

    /// Takes back the last turn. Runs in the queue of turns, so none is at work.
    pub(crate) async fn undo(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Redacted<String>, CommandError> {
        let Some(last) = self.last_turn(message).await? else {
            return Ok(Redacted::constant("There is nothing to take back."));
        };
        let conversation = message.conversation();
        // The files first: killed between the two, the words still say what was done.
        let files = match self.take_files_back(message, last.row).await {
            Ok(files) => files,
            Err(why) => return Ok(Redacted::constant(why)),
        };
        let taken = self
            .history
            .take_back(conversation, last.begins, None, self.now());
        taken.await?;
        // What was taken back planned nothing. Killed before this, the list is newer than what was said, no more.
        let lists = self.store.todo_lists();
        let turn = MessageRow(last.row);
        let tasks = match lists.bring_back(conversation, turn).await? {
            true => " The list of tasks is as it was before.",
            false => "",
        };
        // An agent of others has a memory of its own, which cannot be taken back in part.
        self.forget_agents(conversation).await?;
        let said = last.words.map(|words| words.text().into_owned());
        let said = said.map_or_else(String::new, |said| format!(" ({})", super::title(&said)));
        Ok(self.redactor.redact(format!(
            "Taken back: your last message{said} and my answer. {files}{tasks}"
        )))
    }

    /// Takes the last turn once more: the same words, without what came of them. Files are as they are.
    pub(crate) async fn retry(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<DeliveredReply, HandleError> {
        let last = self.last_turn(message).await?;
        let own = message.row().0;
        // After a crash the words stand under this message already. To take the last turn back once
        // more would take what was just put there.
        let is_begun = last.as_ref().is_some_and(|last| last.row == own);
        if !is_begun {
            let again = last.and_then(|last| Some((last.begins, last.words?)));
            let Some((begins, words)) = again else {
                let nothing = Redacted::constant("There is nothing to say once more.");
                let delivered = self.outbox.deliver(message, &nothing, MessageEnd::Answered);
                return Ok(delivered.await?);
            };
            let line = HistoryLine {
                row: own,
                message: words,
            };
            // Both at once: killed here, the words are there under the new message or under the old one.
            let line = serde_json::to_string(&line).unwrap_or_default();
            let conversation = message.conversation();
            let taken = self
                .history
                .take_back(conversation, begins, Some(&line), self.now());
            taken.await?;
            self.forget_agents(conversation).await?;
        }
        Box::pin(self.answer(message, control)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: i64, row: i64, message: Message) -> (i64, HistoryLine) {
        (number, HistoryLine { row, message })
    }

    #[test]
    fn a_turn_is_all_that_its_message_led_to() {
        assert_eq!(LastTurn::of(&[]), None);
        let lines = [
            line(1, 7, Message::user("one")),
            line(2, 7, Message::assistant("1")),
            line(5, 8, Message::user("two")),
            line(6, 8, Message::assistant("I look")),
            // Said into the turn.
            line(7, 9, Message::user("quick")),
            line(8, 8, Message::assistant("2")),
        ];
        let last = LastTurn::of(&lines).unwrap();
        assert_eq!((last.begins, last.row), (5, 8));
        assert_eq!(last.words, Some(Message::user("two")));
        let first = LastTurn::of(&lines[..2]).unwrap();
        assert_eq!((first.begins, first.row), (1, 7));
        let cut = LastTurn::of(&lines[3..4]).unwrap();
        assert_eq!(cut.words, None, "its words are not there");
    }
}
