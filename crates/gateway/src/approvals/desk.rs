//! The seam to wherever people see questions: chats, or a terminal.

use std::fmt;

use futures::future::BoxFuture;
use hermetic_store::Request;
use thiserror::Error;

/// Shows questions to people who may answer them.
///
/// What an implementer promises: only people who may answer are shown the question in a way that lets
/// them, an answer goes through [`Approvals::answer`](super::Approvals::answer), and neither method
/// waits for the answer.
pub trait Desk: Send + Sync + fmt::Debug {
    /// Shows a question. What fails on the way to one of several people is no error; that there is
    /// nobody at all is.
    fn put<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(), NobodyToAsk>>;

    /// Shows what came of it, where the question was shown.
    fn settled(&self, request: &Request);
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
}
