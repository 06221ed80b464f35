//! `/compact`: a person wants the conversation to be summarised.

use hermetic_agent::{CompactionError, CompactionOrder, mend};
use hermetic_redact::Redacted;

use super::journal::{ReadHistory, StoreJournal};
use super::{CommandError, TurnControl};
use crate::Gateway;
use crate::message::AcceptedMessage;

impl Gateway {
    /// Summarises all but the last exchange. Runs in the queue of turns, so nothing is said meanwhile.
    pub(crate) async fn compact(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<Redacted<String>, CommandError> {
        // Ours is not asked for a summary that the one who answers would never see.
        if let Some(agent) = self.agent_name(message).await? {
            return Ok(self.redactor.redact(format!(
                "{agent} answers here, and keeps for itself what was said to it: there is nothing for us to summarise. \
                 /new begins anew with it and keeps the files."
            )));
        }
        let conversation = message.conversation();
        let read = ReadHistory::of(&self.history, conversation, &self.redactor).await?;
        let begun = self.begun(&read.lines).await?;
        let journal = StoreJournal::new(self, message, control.clone(), read.numbers, true);
        let history = mend(
            read.lines.into_iter().map(|line| line.message).collect(),
            &begun,
        );
        let meter = self.meter(message);
        let agent = self.agent_of(conversation).await?;
        let order = CompactionOrder {
            summary: read.summary.as_ref(),
            history: &history,
            journal: &journal,
            meter: &meter,
        };
        let text = match agent.compact(order, &control.stop).await {
            Ok(done) => format!(
                "Summarised: {} messages, from about {} to about {} tokens. What was said is kept.",
                done.messages,
                done.bytes_before / 3,
                done.bytes_after / 3
            ),
            Err(CompactionError::Nothing | CompactionError::NoShorter) => {
                "There is nothing to summarise yet: all I have before me is the last exchange, or it is short."
                    .to_owned()
            }
            Err(error) => {
                tracing::warn!(%conversation, %error, "a conversation was not summarised");
                format!("Not summarised, and nothing is lost: {}.", error.for_chat())
            }
        };
        Ok(self.redactor.redact(text))
    }
}
