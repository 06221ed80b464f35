//! Answers in a chat: `/approve`, `/deny`, buttons. Only who may answer is listened to.

use std::sync::Arc;

use hermetic_access::{Admitted, SenderRole};
use hermetic_chat::Receipt;
use hermetic_redact::Redacted;
use hermetic_store::{
    AnswerOutcome, ApprovalRequest, ApprovalScope, GivenAnswer, RequestState, StoreError,
    StoredSubject,
};
use hermetic_types::{ButtonPress, ConversationKey, Platform, RequestId};

use crate::Gateway;
use crate::approvals::chat_prompts::DENY;
use crate::approvals::person_name;
use crate::approvals::press::acknowledge_if_late;
use crate::message::AcceptedMessage;
use hermetic_approvals::Answerer;

const NOT_YOURS: &str = "Only somebody who may approve can answer this.";
const STALE: &str = "This question is not open any more.";
const NO_RULES_HERE: &str = "Rules are not written from a chat. Allow it once or for this session; for always, \
     the operator adds a pattern to command_allowlist, or runs `hermetic approvals allow`.";
const LONGEST_REASON: usize = 280;

impl AcceptedMessage {
    pub(crate) fn may_answer(&self) -> bool {
        self.admitted().role() == SenderRole::Operator && !self.said().sender.is_bot
    }
}

/// What was written after `/approve` or `/deny`.
struct WrittenAnswer<'a> {
    id: Option<RequestId>,
    rest: &'a str,
}

impl<'a> WrittenAnswer<'a> {
    fn read(text: &'a str) -> Self {
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A scope is no name, and no name looks like one.
        match first.parse() {
            Ok(id) => Self {
                id: Some(id),
                rest: rest.trim(),
            },
            Err(_) => Self {
                id: None,
                rest: text,
            },
        }
    }
}

impl Gateway {
    pub(crate) async fn approve(
        &self,
        message: &AcceptedMessage,
        text: &str,
    ) -> Result<Redacted<String>, StoreError> {
        let written = WrittenAnswer::read(text);
        let scope = match written.rest.to_ascii_lowercase().as_str() {
            "" | "once" => ApprovalScope::Once,
            "session" => ApprovalScope::Session,
            "10m" | "10 minutes" => ApprovalScope::TenMinutes,
            "always" => ApprovalScope::Always,
            _ => {
                return Ok(Redacted::constant(
                    "Write /approve, or /approve with the question's name, and `session` after it \
                     to allow exactly this for the whole session.",
                ));
            }
        };
        self.answer_question(message, written.id, GivenAnswer::Yes(scope), None)
            .await
    }

    pub(crate) async fn deny(
        &self,
        message: &AcceptedMessage,
        text: &str,
    ) -> Result<Redacted<String>, StoreError> {
        let mut written = WrittenAnswer::read(text);
        if let Some(id) = &written.id
            && self.approvals.questions.rows().find(id).await?.is_none()
        {
            // The first word of a reason may look like a name.
            written = WrittenAnswer {
                id: None,
                rest: text,
            };
        }
        let reason: String = written.rest.chars().take(LONGEST_REASON).collect();
        let reason = (!reason.is_empty()).then_some(reason.as_str());
        self.answer_question(message, written.id, GivenAnswer::No, reason)
            .await
    }

    async fn answer_question(
        &self,
        message: &AcceptedMessage,
        id: Option<RequestId>,
        given: GivenAnswer,
        reason: Option<&str>,
    ) -> Result<Redacted<String>, StoreError> {
        if !message.may_answer() {
            return Ok(Redacted::constant(NOT_YOURS));
        }
        let id = match id {
            Some(id) => id,
            None => match self.the_one_meant(message).await? {
                Ok(id) => id,
                Err(reply) => return Ok(reply),
            },
        };
        let said = message.said();
        let by = person_name(said.platform(), &said.sender.id);
        let answerer = Answerer {
            by: &by,
            via: "chat",
        };
        let approvals = &self.approvals.questions;
        let found = approvals.rows().find(&id).await?;
        if !found.as_ref().is_none_or(|request| {
            is_theirs(
                request,
                said.platform(),
                &by,
                message.admitted().conversation(),
            )
        }) {
            return Ok(Redacted::constant(NOT_YOURS));
        }
        let is_about_a_host = found.is_some_and(|request| request.subject == StoredSubject::Host);
        if given == GivenAnswer::Yes(ApprovalScope::Always) && !is_about_a_host {
            return Ok(Redacted::constant(NO_RULES_HERE));
        }
        // Whose question it is and what it is about never changes, so it could be looked up before.
        // Whether it is still open only this write decides: of two people who answer at once, one
        // is first.
        let outcome = approvals.answer(&id, given, answerer, reason).await?;
        Ok(match outcome {
            AnswerOutcome::First(request) => self.redactor.redact(said_of(&request)),
            AnswerOutcome::TooLate(request) => self.redactor.redact(too_late(&request)),
            AnswerOutcome::Unknown => self.redactor.redact(format!("No question is called {id}.")),
        })
    }

    /// A button was pressed by somebody who may write; whether they may answer is seen here.
    pub(crate) async fn press(self: &Arc<Self>, press: &Admitted<ButtonPress>, receipt: Receipt) {
        let Some(chat) = self.outbox.chat(&press.said().account) else {
            return;
        };
        if self.pass_on_press(press) {
            receipt.stored();
            if let Err(error) = chat.acknowledge_press(press.said()).await {
                tracing::debug!(%error, "a pressed button could not be acknowledged");
            }
            return;
        }
        // First, because such a question is in no row of the store: the look-up below would call
        // its button stale. It ends with this process, so there is nothing to wait for before the
        // receipt is signed.
        if let Some(notice) = self.press_clarification(press) {
            receipt.stored();
            if let Err(error) = chat.answer_press(press.said(), &notice.into()).await {
                tracing::debug!(%error, "a pressed button could not be answered");
            }
            return;
        }
        let looked_up = acknowledge_if_late(chat.as_ref(), press.said(), self.pressed(press)).await;
        let notice = match looked_up {
            (Ok(notice), _) => {
                receipt.stored();
                notice
            }
            (Err(error), was_acknowledged) => {
                tracing::error!(%error, "a pressed button could not be looked up");
                drop(receipt);
                // It comes again, for as long as the store fails: who was told that it arrived is not
                // told that it failed each time.
                if was_acknowledged {
                    return;
                }
                Redacted::constant(crate::wording::BROKEN)
            }
        };
        if let Err(error) = chat.answer_press(press.said(), &notice.into()).await {
            tracing::debug!(%error, "a pressed button could not be answered");
        }
    }

    async fn pressed(&self, press: &Admitted<ButtonPress>) -> Result<Redacted<String>, StoreError> {
        // Before the token is looked up: to somebody who may not answer, a button that means
        // something and one that does not are the same.
        if press.role() != SenderRole::Operator || press.sender().is_bot {
            return Ok(Redacted::constant(NOT_YOURS));
        }
        let approvals = &self.approvals.questions;
        let Some((request, choice)) = approvals.rows().pressed(&press.said().data).await? else {
            return Ok(Redacted::constant(STALE));
        };
        let given = match ApprovalScope::named(&choice) {
            Some(scope) => GivenAnswer::Yes(scope),
            None if choice == DENY => GivenAnswer::No,
            None => return Ok(Redacted::constant(STALE)),
        };
        let by = person_name(press.said().platform(), &press.sender().id);
        if !is_theirs(&request, press.said().platform(), &by, press.conversation()) {
            return Ok(Redacted::constant(NOT_YOURS));
        }
        let answerer = Answerer {
            by: &by,
            via: "button",
        };
        let outcome = approvals.answer(&request.id, given, answerer, None).await?;
        Ok(match outcome {
            AnswerOutcome::First(request) => self.redactor.redact(said_of(&request)),
            AnswerOutcome::TooLate(request) => {
                // The message still asked: it says now what became of it.
                self.approvals.prompts.settle(&request);
                self.redactor.redact(too_late(&request))
            }
            AnswerOutcome::Unknown => Redacted::constant(STALE),
        })
    }
}

/// Whether this person may answer this question at all.
///
/// Behind a webhook's name stands whoever holds its secret, so there a name answers for what its own messages
/// led to, and for nobody else's.
pub(crate) fn is_theirs(
    request: &ApprovalRequest,
    platform: Platform,
    by: &str,
    conversation: &ConversationKey,
) -> bool {
    platform != Platform::Webhook || request.asker == by || request.conversation == *conversation
}

fn said_of(request: &ApprovalRequest) -> String {
    let id = &request.id;
    match (request.state, request.scope) {
        (RequestState::Approved, Some(ApprovalScope::Always))
            if request.subject == StoredSubject::Host =>
        {
            format!("{id}: allowed from now on.")
        }
        (RequestState::Approved, Some(ApprovalScope::Session | ApprovalScope::Always)) => {
            format!("{id}: allowed for this session.")
        }
        (RequestState::Approved, Some(ApprovalScope::TenMinutes)) => {
            format!("{id}: allowed for ten minutes.")
        }
        (RequestState::Approved, _) => format!("{id}: allowed once."),
        _ => format!("{id}: refused."),
    }
}

fn too_late(request: &ApprovalRequest) -> String {
    let what = match request.state {
        RequestState::Approved => "was allowed already",
        RequestState::Denied => "was refused already",
        RequestState::Expired => "ran out of time, which is a no",
        RequestState::Withdrawn | RequestState::Pending => "is not waited for any more",
    };
    match &request.answered_by {
        Some(by) => format!("Too late: {} {what} by {by}.", request.id),
        None => format!("Too late: {} {what}.", request.id),
    }
}
