//! `/destroy`: the sandbox with its files goes, after a second word.
//!
//! The question is remembered in this process alone. A restart in between costs one more `/destroy`, and
//! never a file.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_redact::Redacted;
use hermetic_store::MessageRow;
use hermetic_types::{ConversationKey, SandboxId};
use tokio::time::Instant;

use crate::Gateway;
use crate::approvals::person_name;
use crate::conversation::CommandError;
use crate::message::AcceptedMessage;

/// Time to read the question and to write two words.
const GOOD_FOR: Duration = Duration::from_secs(120);

/// What confirms.
const YES: &str = "yes";

/// Who was asked, in which conversation, whether its sandbox shall go.
#[derive(Debug, Default)]
pub(crate) struct DestroyConfirmations(Mutex<HashMap<ConversationKey, DestroyConfirmation>>);

#[derive(Debug)]
struct DestroyConfirmation {
    asked: String,
    until: Instant,
    /// The message that said yes in time.
    given: Option<MessageRow>,
}

impl DestroyConfirmations {
    fn ask(&self, conversation: &ConversationKey, who: String) {
        let mut waiting = self.lock();
        // Here, where one is added, because nobody comes by for a question that was never answered.
        waiting.retain(|_, one| one.until > Instant::now());
        let asked = DestroyConfirmation {
            asked: who,
            until: Instant::now() + GOOD_FOR,
            given: None,
        };
        waiting.insert(conversation.clone(), asked);
    }

    /// Whether this yes counts: in time, and from who was asked or from an operator.
    fn give(&self, conversation: &ConversationKey, who: &str, rules: bool, by: MessageRow) -> bool {
        let mut waiting = self.lock();
        let Some(one) = waiting.get_mut(conversation) else {
            return false;
        };
        let counts = one.until > Instant::now() && (one.asked == who || rules);
        if counts {
            // Kept under the message that said it: the yes is heard at once, because it interrupts
            // what runs, but used only when its own turn comes, and another `/destroy` may stand
            // before it.
            one.given = Some(by);
        }
        counts
    }

    /// Uses the yes of that message up.
    fn spend(&self, conversation: &ConversationKey, by: MessageRow) -> bool {
        let mut waiting = self.lock();
        // The clock is not asked again: the yes came in time, and waited for a turn to end since.
        let given = waiting.get(conversation).and_then(|one| one.given);
        let counts = given == Some(by);
        if counts {
            waiting.remove(conversation);
        }
        counts
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, DestroyConfirmation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Whether this message destroys the sandbox, and does not only ask about it.
    pub(crate) fn destroys_now(&self, message: &AcceptedMessage, word: &str) -> bool {
        let said_yes = word.eq_ignore_ascii_case(YES);
        if !self.settings.confirm_destructive {
            return said_yes || word.is_empty();
        }
        let said = message.said();
        let who = person_name(said.platform(), &said.sender.id);
        let conversation = message.conversation();
        said_yes
            && self
                .confirmations
                .give(conversation, &who, message.may_answer(), message.row())
    }

    pub(crate) async fn destroy(
        &self,
        message: &AcceptedMessage,
        word: &str,
    ) -> Result<Redacted<String>, CommandError> {
        let conversation = message.conversation();
        let goes = match self.settings.confirm_destructive {
            true => self.confirmations.spend(conversation, message.row()),
            false => word.is_empty() || word.eq_ignore_ascii_case(YES),
        };
        if !goes {
            return Ok(self.ask_before_destroying(message));
        }
        self.erase(conversation).await?;
        Ok(Redacted::constant(
            "The sandbox and its files are gone, and what was said is forgotten.",
        ))
    }

    /// Destroys a conversation's sandboxes with their files, and forgets what was said and allowed.
    pub(crate) async fn erase(&self, conversation: &ConversationKey) -> Result<(), CommandError> {
        // All are tried, whatever comes of the first. What was allowed goes before what it was allowed for.
        let revoked = self.approvals.questions.revoke(conversation).await;
        let cleared = self.history.clear(conversation).await;
        let forgotten = self.toolsets.background().forget(conversation).await;
        // An agent of others that waits for its next turn lives in there and would die with it; let
        // go first, it is closed by us and is not taken for one that broke off.
        self.running_agents.end(conversation);
        let destroyed = self.sandboxes.reset(conversation).await;
        // What the store kept is told first: the sandbox is tried again by the reaper, this by nobody but who
        // asks again.
        revoked?;
        cleared?;
        forgotten?;
        Ok(destroyed?)
    }

    /// Destroys one sandbox of a conversation with its files. What was said stays.
    pub(crate) async fn destroy_one(
        &self,
        conversation: &ConversationKey,
        sandbox: &SandboxId,
        in_use: bool,
    ) -> Result<(), CommandError> {
        if in_use {
            // What was allowed goes before what it was allowed for, as when all of it is destroyed.
            self.approvals.questions.revoke(conversation).await?;
            self.toolsets.background().forget(conversation).await?;
            self.running_agents.end(conversation);
        }
        Ok(self.sandboxes.destroy_one(conversation, sandbox).await?)
    }

    fn ask_before_destroying(&self, message: &AcceptedMessage) -> Redacted<String> {
        let said = message.said();
        let who = person_name(said.platform(), &said.sender.id);
        if self.settings.confirm_destructive {
            self.confirmations.ask(message.conversation(), who);
        }
        Redacted::constant(
            "❗ This destroys the sandbox of this conversation with all files in it, also those that were \
             kept from before on another backend, ends what runs there, and forgets what was said. \
             Nothing of it comes back.\n\nWrite `/destroy yes` within two minutes if you mean it. To \
             forget what was said and keep the files, write /new forget.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_yes_counts_in_time_and_from_who_was_asked_or_an_operator() {
        let (confirmations, here) = (DestroyConfirmations::default(), ConversationKey::new("k"));
        let row = MessageRow;
        assert!(
            !confirmations.give(&here, "alice", true, row(1)),
            "nobody asked"
        );
        confirmations.ask(&here, "alice".to_owned());
        assert!(!confirmations.give(&here, "bob", false, row(2)), "not his");
        assert!(!confirmations.spend(&here, row(2)));
        let elsewhere = ConversationKey::new("other");
        assert!(!confirmations.give(&elsewhere, "alice", false, row(3)));
        assert!(confirmations.give(&here, "alice", false, row(4)));
        assert!(!confirmations.spend(&here, row(3)), "another message");
        // Its turn may come late; the yes came in time.
        tokio::time::advance(GOOD_FOR * 2).await;
        assert!(confirmations.spend(&here, row(4)));
        assert!(!confirmations.spend(&here, row(4)), "used twice");
        confirmations.ask(&here, "alice".to_owned());
        assert!(
            confirmations.give(&here, "carol", true, row(5)),
            "an operator"
        );
        confirmations.ask(&here, "alice".to_owned());
        tokio::time::advance(GOOD_FOR).await;
        assert!(
            !confirmations.give(&here, "alice", false, row(6)),
            "too late"
        );
    }
}
