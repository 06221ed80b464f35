//! Questions of the agent to the person it works for.
//!
//! They live in this process alone. After a restart nobody waits for an answer: an old button says that its
//! question is not open any more, and what is written is an ordinary message.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_access::Admitted;
use hermetic_chat::{Chat, ChatReply, ReplyButton, ReplyRule};
use hermetic_redact::{Redacted, Redactor};
use hermetic_tools::{ClarifyError, ClarifyQuestion};
use hermetic_types::{
    AccountId, ButtonPress, ChatPlace, ConversationKey, MessageId, RunId, UserId,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::TurnControl;
use crate::Gateway;
use crate::message::AcceptedMessage;
use crate::message::notices::is_notice;
use crate::run::GatewaySignal;

/// Begins the data of a button that answers such a question.
const TOKEN: &str = "c:";
const STALE: &str = "This question is not open any more.";
const NOT_ASKED: &str = "Only the person who was asked can answer this.";
/// What is kept of an answer in words.
const ANSWER_CHARS: usize = 10_000;

/// The questions that wait for an answer, at most one in a conversation.
#[derive(Debug, Default)]
pub(crate) struct Clarifications {
    open: Mutex<HashMap<ConversationKey, OpenClarification>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct OpenClarification {
    number: u64,
    asked: AskedPerson,
    choices: Vec<String>,
    /// What the button of each choice carries.
    tokens: Vec<String>,
    answer: oneshot::Sender<String>,
    /// Of the turn that asks.
    turn: TurnControl,
}

/// Whose answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedPerson {
    account: AccountId,
    user: UserId,
}

/// A question that is open until this is dropped.
struct ClarificationGuard<'a> {
    clarifications: &'a Clarifications,
    conversation: &'a ConversationKey,
    number: u64,
}

/// Somebody in a chat who can be asked.
#[derive(Clone, Debug)]
pub(crate) struct PersonInChat {
    chat: Arc<dyn Chat>,
    place: ChatPlace,
    asked: AskedPerson,
    conversation: ConversationKey,
    clarifications: Arc<Clarifications>,
    redactor: Redactor,
    patience: Duration,
    turn: TurnControl,
}

impl PersonInChat {
    pub(super) async fn ask(
        &self,
        question: ClarifyQuestion,
        stop: &CancellationToken,
    ) -> Result<String, ClarifyError> {
        let (sender, mut receiver) = oneshot::channel();
        let tokens: Vec<_> = question
            .choices
            .iter()
            .map(|_| format!("{TOKEN}{}", RunId::random()))
            .collect();
        // Before it is shown: whoever reads it may answer before the platform has told us its number.
        let _open = self.clarifications.begin(
            &self.conversation,
            OpenClarification {
                number: 0,
                asked: self.asked.clone(),
                choices: question.choices.clone(),
                tokens: tokens.clone(),
                answer: sender,
                turn: self.turn.clone(),
            },
        );
        let shown = self.show(&question, &tokens).await?;
        let answered = tokio::select! {
            // The answer first: whoever gave it was thanked for it, also when it came in the moment
            // in which patience ended or somebody wrote `/stop`.
            biased;
            answer = &mut receiver => answer.map_err(|_| ClarifyError::Interrupted),
            () = stop.cancelled() => Err(ClarifyError::Interrupted),
            () = tokio::time::sleep(self.patience) => Err(ClarifyError::NoAnswer),
        };
        self.settle(shown, &question, answered.as_deref().ok())
            .await;
        answered
    }

    async fn show(
        &self,
        question: &ClarifyQuestion,
        tokens: &[String],
    ) -> Result<Option<MessageId>, ClarifyError> {
        let text = self.redactor.redact(question_text(question));
        let mut reply = ChatReply::text(text.into());
        if self.chat.capabilities().buttons.is_some() {
            let numbered = tokens.iter().zip(&question.choices).enumerate();
            let rows = numbered.filter_map(|(at, (token, choice))| {
                // A label may be cut by the platform; the text has all of it.
                let label = self.redactor.redact(format!("{}. {choice}", at + 1));
                let button = ReplyButton::new(label.into_inner(), token.clone());
                Some(vec![button.ok()?])
            });
            reply.buttons = rows.collect();
        }
        let sent = self.chat.send(&self.place, &reply).await;
        let messages = sent.map_err(|error| {
            tracing::warn!(account = %self.asked.account, %error, "a question of the agent could not be shown");
            ClarifyError::NotShown
        })?;
        Ok(messages.last().cloned())
    }

    /// The buttons go with the question.
    async fn settle(
        &self,
        shown: Option<MessageId>,
        question: &ClarifyQuestion,
        answer: Option<&str>,
    ) {
        let (Some(message), true) = (shown, self.chat.capabilities().edits) else {
            return;
        };
        let text = match answer {
            Some(answer) => format!("❓ {}\n\n→ {answer}", question.text),
            None => format!("❓ {}\n\nNot waited for any more.", question.text),
        };
        let text = self.redactor.redact(text).into();
        if let Err(error) = self.chat.edit(&self.place, &message, &text, &[]).await {
            tracing::debug!(%error, "an answered question still asks");
        }
    }
}

impl Clarifications {
    fn begin<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        mut question: OpenClarification,
    ) -> ClarificationGuard<'a> {
        // The number tells the guard of an older question, which is dropped after this one took its
        // place, that what stands there is not its own.
        question.number = self.next.fetch_add(1, Ordering::Relaxed);
        let number = question.number;
        // One turn runs at a time, so what was open is not waited for any more.
        self.open().insert(conversation.clone(), question);
        ClarificationGuard {
            clarifications: self,
            conversation,
            number,
        }
    }

    /// Whether these words of this person answer the question that is open there. The message that brought them
    /// is the turn's to end.
    fn answer_in_words(
        &self,
        conversation: &ConversationKey,
        by: &AskedPerson,
        words: &str,
        message: Option<&AcceptedMessage>,
    ) -> bool {
        let mut open = self.open();
        let is_theirs = open
            .get(conversation)
            .is_some_and(|question| question.asked == *by);
        // Taken out under the same lock: of two messages in a row only the first is an answer, the
        // second is a message again.
        let question = is_theirs.then(|| open.remove(conversation)).flatten();
        question.is_some_and(|question| {
            let answer = question.meant_by(words);
            let turn = question.turn;
            // Before it is sent: the turn may have written it down before this goes on.
            message.inspect(|message| turn.note_answer(message));
            let is_heard = question.answer.send(answer).is_ok();
            if !is_heard {
                message.inspect(|message| turn.forget_answer(message));
            }
            is_heard
        })
    }

    /// Whether a question is open whose button this is.
    fn knows(&self, token: &str) -> bool {
        let open = self.open();
        let mut tokens = open.values().flat_map(|question| &question.tokens);
        tokens.any(|known| known == token)
    }

    /// What somebody is told who pressed a button.
    fn press(&self, by: &AskedPerson, token: &str) -> &'static str {
        let mut open = self.open();
        let found = open.iter().find_map(|(conversation, question)| {
            let at = question.tokens.iter().position(|known| known == token)?;
            Some((conversation.clone(), at))
        });
        let Some((conversation, at)) = found else {
            return STALE;
        };
        if open
            .get(&conversation)
            .is_none_or(|question| question.asked != *by)
        {
            return NOT_ASKED;
        }
        let question = open.remove(&conversation);
        let answered = question.is_some_and(|mut question| {
            let choice = question.choices.swap_remove(at);
            question.answer.send(choice).is_ok()
        });
        match answered {
            true => "Thank you.",
            false => STALE,
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ConversationKey, OpenClarification>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenClarification {
    /// A number names a choice; everything else is an answer by itself.
    fn meant_by(&self, words: &str) -> String {
        let words = words.trim();
        let number = words.trim_end_matches(['.', ')']).parse::<usize>().ok();
        let chosen = number.and_then(|number| self.choices.get(number.checked_sub(1)?));
        match chosen {
            Some(choice) => choice.clone(),
            None => words.chars().take(ANSWER_CHARS).collect(),
        }
    }
}

impl Drop for ClarificationGuard<'_> {
    fn drop(&mut self) {
        let mut open = self.clarifications.open();
        let is_this = |question: &OpenClarification| question.number == self.number;
        if open.get(self.conversation).is_some_and(is_this) {
            open.remove(self.conversation);
        }
    }
}

impl Gateway {
    /// Whoever sent this message, where they can be asked something before it is answered.
    pub(super) fn person_in_chat(
        &self,
        message: &AcceptedMessage,
        turn: &TurnControl,
    ) -> Option<PersonInChat> {
        let said = message.said();
        let chat = self.outbox.chat(&said.account)?;
        let is_free = chat.capabilities().replies == ReplyRule::Free;
        (is_free && !said.sender.is_bot).then(|| PersonInChat {
            chat: Arc::clone(chat),
            place: said.place.clone(),
            asked: AskedPerson {
                account: said.account.clone(),
                user: said.sender.id.clone(),
            },
            conversation: message.conversation().clone(),
            clarifications: Arc::clone(&self.clarifications),
            redactor: self.redactor.clone(),
            patience: self.settings.clarify_timeout,
            turn: turn.clone(),
        })
    }

    /// Takes a message that answers an open question; gives back every other.
    pub(super) fn take_clarification(&self, message: AcceptedMessage) -> Option<AcceptedMessage> {
        let said = message.said();
        let by = AskedPerson {
            account: said.account.clone(),
            user: said.sender.id.clone(),
        };
        // What comes with a file is something new.
        let is_words = said.attachments.is_empty()
            && !said.text.trim().is_empty()
            // A process speaks in a person's name, and never answers for one.
            && !is_notice(said);
        let (conversation, words) = (message.conversation(), said.text.as_str());
        let open = &self.clarifications;
        let answers = is_words && open.answer_in_words(conversation, &by, words, Some(&message));
        (!answers).then_some(message)
    }

    /// Whether a press is passed on to the other gateways.
    ///
    /// Questions of an agent are in no row: a button that is not known here may be of one that another gateway asks.
    pub(crate) fn pass_on_press(self: &Arc<Self>, press: &Admitted<ButtonPress>) -> bool {
        let data = &press.said().data;
        let is_others =
            self.sharing.is_some() && data.starts_with(TOKEN) && !self.clarifications.knows(data);
        if is_others {
            let pressed = Box::new(press.said().clone());
            self.tell_others(GatewaySignal::Pressed(pressed));
        }
        is_others
    }

    /// What somebody is told who pressed a button of such a question; nothing for another button.
    pub(crate) fn press_clarification(
        &self,
        press: &Admitted<ButtonPress>,
    ) -> Option<Redacted<String>> {
        let data = &press.said().data;
        if !data.starts_with(TOKEN) {
            return None;
        }
        let by = AskedPerson {
            account: press.said().account.clone(),
            user: press.sender().id.clone(),
        };
        Some(Redacted::constant(self.clarifications.press(&by, data)))
    }
}

fn question_text(question: &ClarifyQuestion) -> String {
    let mut text = format!("❓ {}", question.text);
    if question.choices.is_empty() {
        return text;
    }
    text.push('\n');
    for (at, choice) in question.choices.iter().enumerate() {
        text.push_str(&format!("\n{}. {choice}", at + 1));
    }
    text.push_str("\n\nPick one, or write another answer.");
    text
}

#[cfg(test)]
mod tests;
