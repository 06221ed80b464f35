//! The record that makes a crash in the middle of a turn harmless.

use std::error::Error;

use futures::future::{self, BoxFuture, FutureExt};
use thiserror::Error;

use crate::{CallId, HistorySummary, Message, ToolCall};

/// Where a turn is written down as it happens.
///
/// What an implementer promises: when a future here is done, the fact survives a crash. A step that
/// could not be written down is not taken.
pub trait TurnJournal: Send + Sync {
    /// A message now belongs to the conversation.
    fn said<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The call may have side effects from now on.
    fn tool_about_to_run<'a>(
        &'a self,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The call has ended and `result`, a [`Message::Tool`], belongs to the conversation.
    fn tool_ended<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Message,
    ) -> BoxFuture<'a, Result<(), JournalError>>;

    /// From now on `summary` stands for all of the conversation but its end: the last `kept` messages that
    /// are no results of tools, and the results among them. Either all of that is written down or nothing.
    fn compacted<'a>(
        &'a self,
        _summary: &'a HistorySummary,
        _kept: usize,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        future::ready(Ok(())).boxed()
    }
}

#[derive(Debug, Error)]
#[error("cannot write down what happens in this turn")]
pub struct JournalError {
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Forgets everything: for a conversation that nobody will resume.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl TurnJournal for NoJournal {
    fn said<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<(), JournalError>> {
        future::ready(Ok(())).boxed()
    }

    fn tool_about_to_run<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, Result<(), JournalError>> {
        future::ready(Ok(())).boxed()
    }

    fn tool_ended<'a>(
        &'a self,
        _: &'a CallId,
        _: &'a Message,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        future::ready(Ok(())).boxed()
    }
}
