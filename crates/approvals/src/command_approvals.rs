//! The tools' seam to people, for one person's words in one conversation.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_policy::{ApprovalQuestion, Cleared, CommandApproval, ModelReview};
use hermetic_store::{ApprovalScope, MessageRow, StoredSubject};
use hermetic_tools::shown::{command, legible};
use hermetic_tools::{CommandApprover, CommandDenied, DecidedCommand, JudgedAs};
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::approvals::{RequestSubject, cannot_ask};
use crate::waits::ApprovalWaits;
use crate::{ApprovalPrompt, ApprovalRegistry};

/// Whose question it is.
#[derive(Clone, Debug)]
pub struct Requester {
    pub conversation: ConversationKey,
    /// What is being worked on, where it is a message.
    pub message: Option<MessageRow>,
    /// `platform:user`, or whatever names the person for good.
    pub by: String,
}

/// Asks people about commands in one requester's name, and records what became of every command.
#[derive(Clone, Debug)]
pub struct CommandApprovals {
    pub(crate) approvals: ApprovalRegistry,
    pub(crate) requester: Requester,
    pub(crate) prompt: Arc<dyn ApprovalPrompt>,
    waits: ApprovalWaits,
    /// The part of the work that it is for, as the question tells it.
    subtask: Option<String>,
}

impl ApprovalRegistry {
    /// Asks by this prompt, in this person's name.
    pub fn commands(
        &self,
        requester: Requester,
        prompt: Arc<dyn ApprovalPrompt>,
    ) -> CommandApprovals {
        CommandApprovals {
            approvals: self.clone(),
            requester,
            prompt,
            waits: ApprovalWaits::default(),
            subtask: None,
        }
    }
}

impl CommandApprovals {
    /// The same for a part of the work, which questions name; its waits are counted apart.
    #[must_use]
    pub fn for_subtask(&self, subtask: &str) -> Self {
        Self {
            waits: ApprovalWaits::default(),
            subtask: Some(format!("asked by {subtask}")),
            ..self.clone()
        }
    }

    /// How long people were waited for.
    pub fn waits(&self) -> &ApprovalWaits {
        &self.waits
    }

    async fn put(
        &self,
        question: ApprovalQuestion,
        stop: &CancellationToken,
    ) -> Result<Cleared, CommandDenied> {
        let fingerprint = question.fingerprint().clone();
        let what = legible(&command(question.command()));
        let what = self.approvals.0.redactor.redact(what);
        let reasons = self.reasons(&question);
        let about = RequestSubject {
            subject: StoredSubject::Command,
            what: what.as_str(),
            fingerprint: fingerprint.as_str(),
            reasons: &reasons,
            longest: match question.longest_yes() {
                hermetic_policy::AnswerScope::Once => ApprovalScope::Once,
                hermetic_policy::AnswerScope::Session => ApprovalScope::Session,
            },
        };
        // An earlier yes first, then the model, then a person: each is asked only what the one
        // before left open.
        let scope = if self.is_granted(&about).await? {
            hermetic_policy::AnswerScope::Session
        } else {
            let question = match self.lowered(question.clone(), stop).await {
                Ok(cleared) => return Ok(cleared),
                Err(question) => question,
            };
            // What was shown and what will run are the same question still; a yes names its
            // fingerprint and fits no other.
            debug_assert_eq!(question.fingerprint(), &fingerprint);
            let _waits = self.waits.begin();
            let put = self
                .approvals
                .put(&self.requester, &about, &*self.prompt, stop);
            match put.await? {
                ApprovalScope::Once | ApprovalScope::TenMinutes => {
                    hermetic_policy::AnswerScope::Once
                }
                ApprovalScope::Session | ApprovalScope::Always => {
                    hermetic_policy::AnswerScope::Session
                }
            }
        };
        let yes = CommandApproval::yes(fingerprint, scope);
        question.answered(&yes).map_err(|error| cannot_ask(&error))
    }

    /// Whether an earlier yes covers it. One from before it was known to hold only once does not.
    pub(crate) async fn is_granted(
        &self,
        about: &RequestSubject<'_>,
    ) -> Result<bool, CommandDenied> {
        if about.longest == ApprovalScope::Once {
            return Ok(false);
        }
        let granted = self
            .approvals
            .is_granted(&self.requester.conversation, about);
        granted.await.map_err(|error| cannot_ask(&error))
    }

    /// Where the rules let a model look first.
    async fn lowered(
        &self,
        question: ApprovalQuestion,
        stop: &CancellationToken,
    ) -> Result<Cleared, Box<ApprovalQuestion>> {
        let reviewer = self.approvals.0.reviewer.as_ref();
        let Some(reviewer) = reviewer.filter(|_| question.lowerable() == ModelReview::ByModel)
        else {
            return Err(Box::new(question));
        };
        let redactor = &self.approvals.0.redactor;
        if !reviewer.finds_harmless(&question, redactor, stop).await {
            return Err(Box::new(question));
        }
        let fingerprint = question.fingerprint().clone();
        question.lowered_by_model(&fingerprint)
    }

    fn reasons(&self, question: &ApprovalQuestion) -> Vec<String> {
        let redactor = &self.approvals.0.redactor;
        let reasons = question.reasons().into_iter().chain(self.subtask.clone());
        reasons
            .map(|reason| redactor.redact(legible(&reason)).into_inner())
            .collect()
    }
}

impl CommandApprover for CommandApprovals {
    fn ask<'a>(
        &'a self,
        question: ApprovalQuestion,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
        self.put(question, stop).boxed()
    }

    fn decided(&self, decided: DecidedCommand<'_>) -> Result<(), CommandDenied> {
        let recorded = self.approvals.record_command(&self.requester, decided);
        recorded.map_err(|error| match decided.as_what {
            JudgedAs::Run(_) => cannot_ask(&error),
            // It does not run either way, and for the better reason.
            JudgedAs::Refused(_) | JudgedAs::Denied(_) => {
                tracing::error!(%error, "a refusal could not be recorded");
                CommandDenied("It was refused. Nothing was run.".to_owned())
            }
        })
    }
}
