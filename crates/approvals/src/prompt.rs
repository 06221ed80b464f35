//! The seam to wherever people see questions: chats, or a terminal.

use std::fmt;
use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_store::ApprovalRequest;
use hermetic_types::ConversationKey;
use thiserror::Error;

use crate::Requester;

/// Shows questions to people who may answer them.
///
/// What an implementer promises: only people who may answer are shown the question in a way that lets
/// them, an answer goes through [`ApprovalRegistry::answer`](crate::ApprovalRegistry::answer), and neither method
/// waits for the answer.
pub trait ApprovalPrompt: Send + Sync + fmt::Debug {
    /// Shows a question. What fails on the way to one of several people is no error; that there is
    /// nobody at all is.
    fn show<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), NobodyToAsk>>;

    /// Shows what came of it, where the question was shown.
    fn settled(&self, request: &ApprovalRequest);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NobodyToAsk {
    #[error(
        "nobody who may say yes can be asked, so it is refused; the operator names such people in \
         approvals.approvers"
    )]
    NoApprover,
    #[error(
        "nobody is at a keyboard to say yes, so it is refused; `hermetic chat` in a terminal, without \
         -q, asks"
    )]
    NobodyAtTheKeyboard,
    #[error("this runs on a schedule, where nobody is asked, so it is refused")]
    Unattended,
}

/// Asks nobody: whoever would be asked is not there, and silence is no.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnattendedPrompt;

impl ApprovalPrompt for UnattendedPrompt {
    fn show<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), NobodyToAsk>> {
        future::ready(Err(NobodyToAsk::Unattended)).boxed()
    }

    fn settled(&self, _: &ApprovalRequest) {}
}

/// Knows who is asked, and where, about something that no message leads to: a connection of a process.
pub trait PromptSource: Send + Sync + fmt::Debug {
    fn prompt_for(&self, conversation: &ConversationKey) -> (Requester, Arc<dyn ApprovalPrompt>);
}

/// The same person by the same prompt, whatever the conversation.
#[derive(Clone, Debug)]
pub struct FixedPrompt {
    pub requester: Requester,
    pub prompt: Arc<dyn ApprovalPrompt>,
}

impl PromptSource for FixedPrompt {
    fn prompt_for(&self, _: &ConversationKey) -> (Requester, Arc<dyn ApprovalPrompt>) {
        (self.requester.clone(), Arc::clone(&self.prompt))
    }
}
