//! All that asking people takes: the questions, the chats that show them, and who spoke last in which
//! conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_approvals::{
    ApprovalPrompt, ApprovalRegistry, CommandApprovals, EgressRecord, HostApprovals, PromptSource,
    Requester, UnattendedPrompt,
};
use hermetic_audit::AuditEvent;
use hermetic_chat::Chat;
use hermetic_egress::RuleBook;
use hermetic_redact::Redactor;
use hermetic_types::{AccountId, ConversationKey, Platform, UserId};

use super::chat_prompts::{ChatPrompt, ChatPrompts, PromptSpeaker};
use crate::message::AcceptedMessage;

#[derive(Clone, Debug)]
pub struct ApprovalService {
    pub(crate) questions: ApprovalRegistry,
    pub(crate) prompts: ChatPrompts,
    speakers: Arc<Mutex<HashMap<ConversationKey, (Requester, PromptSpeaker)>>>,
}

/// Conversations whose last speaker is remembered. Beyond that the approvers are asked.
const MOST_SPEAKERS: usize = 10_000;

impl ApprovalService {
    pub fn new(
        approvals: ApprovalRegistry,
        chats: &[Arc<dyn Chat>],
        redactor: Redactor,
        approvers: Vec<(AccountId, UserId)>,
    ) -> Self {
        Self {
            prompts: ChatPrompts::new(approvals.clone(), chats, redactor, approvers),
            questions: approvals,
            speakers: Arc::default(),
        }
    }

    /// The questions themselves, for whoever else shows them.
    pub fn registry(&self) -> &ApprovalRegistry {
        &self.questions
    }

    /// Asks about commands for whoever sent this message.
    pub(crate) fn commands(&self, message: &AcceptedMessage) -> CommandApprovals {
        let said = message.said();
        let requester = Requester {
            conversation: message.conversation().clone(),
            message: Some(message.row()),
            by: person_name(said.platform(), &said.sender.id),
        };
        // A job is not remembered as who spoke last: its person is not there, and a host that a
        // process asks for would be put to a chat in which nobody expects it.
        if message.is_scheduled() {
            return self
                .questions
                .commands(requester, Arc::new(UnattendedPrompt));
        }
        let speaker = PromptSpeaker {
            account: said.account.clone(),
            place: said.place.clone(),
            approves: message.may_answer(),
        };
        let mut speakers = self.speakers.lock().unwrap_or_else(PoisonError::into_inner);
        if speakers.len() >= MOST_SPEAKERS {
            // All of them, which needs no order of use. What it costs is that the next question
            // about a host goes to the approvers, until somebody speaks again.
            speakers.clear();
        }
        speakers.insert(
            message.conversation().clone(),
            (requester.clone(), speaker.clone()),
        );
        drop(speakers);
        let prompt = ChatPrompt {
            prompts: self.prompts.clone(),
            speaker: Some(speaker),
        };
        self.questions.commands(requester, Arc::new(prompt))
    }

    /// Who spoke last there, for questions that no message leads to directly.
    fn last_speaker(&self, conversation: &ConversationKey) -> (Requester, Option<PromptSpeaker>) {
        let speakers = self.speakers.lock().unwrap_or_else(PoisonError::into_inner);
        match speakers.get(conversation) {
            Some((requester, speaker)) => (requester.clone(), Some(speaker.clone())),
            None => {
                let requester = Requester {
                    conversation: conversation.clone(),
                    message: None,
                    by: "a process".to_owned(),
                };
                (requester, None)
            }
        }
    }

    /// Asks about hosts whoever spoke last in the conversation.
    pub fn hosts(&self, rules: RuleBook) -> HostApprovals {
        self.questions.hosts(Arc::new(self.clone()), rules)
    }

    pub fn egress_record(&self) -> EgressRecord {
        self.questions.egress_record()
    }

    /// What need not hold anything up if it cannot be written.
    pub(crate) fn note(&self, event: &AuditEvent) {
        if let Err(error) = self.questions.append(event) {
            tracing::error!(%error, "the record could not be written");
        }
    }

    /// What a crash left open is brought to its end.
    pub(crate) async fn tidy(&self) {
        match self.questions.tidy().await {
            Ok(settled) => settled
                .iter()
                .for_each(|request| self.prompts.settle(request)),
            Err(error) => tracing::error!(%error, "questions could not be tidied up"),
        }
    }
}

impl PromptSource for ApprovalService {
    fn prompt_for(&self, conversation: &ConversationKey) -> (Requester, Arc<dyn ApprovalPrompt>) {
        let (requester, speaker) = self.last_speaker(conversation);
        if conversation.is_unattended() {
            return (requester, Arc::new(UnattendedPrompt));
        }
        let prompts = self.prompts.clone();
        (requester, Arc::new(ChatPrompt { prompts, speaker }))
    }
}

/// A name of a person that stays theirs.
pub(crate) fn person_name(platform: Platform, user: &UserId) -> String {
    format!("{platform}:{user}")
}
