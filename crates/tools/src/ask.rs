//! The seam to the person who decides what a sandbox cannot undo.

use std::fmt;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_policy::{ApprovalQuestion, Cleared, PolicyRefusal, RefusedBy, Verdict};
use hermetic_types::{BackendKind, Command};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::BlockedCommand;

/// Puts a question to somebody who may answer it.
///
/// What an implementer promises: a yes comes from a person who may give it (or stands from one given
/// before, for exactly this), the wait is bounded and ends soon after `stop` is cancelled, and
/// silence, doubt and failure are a no.
pub trait CommandApprover: Send + Sync + fmt::Debug {
    fn ask<'a>(
        &'a self,
        question: ApprovalQuestion,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>>;

    /// Learns what became of a command, before anything runs. A command that cannot be written down
    /// where that is wanted does not run.
    fn decided(&self, _: DecidedCommand<'_>) -> Result<(), CommandDenied> {
        Ok(())
    }
}

/// A command that was judged, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct DecidedCommand<'a> {
    pub backend: BackendKind,
    pub command: &'a Command,
    pub as_what: JudgedAs<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum JudgedAs<'a> {
    Run(&'a Cleared),
    Refused(&'a PolicyRefusal),
    Denied(&'a CommandDenied),
}

impl JudgedAs<'_> {
    /// Why, in words for a record.
    pub fn grounds(&self) -> String {
        match self {
            Self::Run(cleared) => format!("{:?}", cleared.grounds()),
            Self::Refused(refusal) => match refusal.by() {
                RefusedBy::Floor => "floor".to_owned(),
                RefusedBy::Deny { glob } => format!("deny {glob}"),
            },
            Self::Denied(denied) => denied.to_string(),
        }
    }
}

/// A no, with its reason in words for the model and the chat.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CommandDenied(pub String);

/// What becomes of a verdict: a person is asked where it wants one, and `decided` learns of it before
/// anything is done.
pub(crate) async fn settle(
    verdict: Verdict,
    decided: impl Fn(JudgedAs<'_>) -> Result<(), CommandDenied>,
    ask: &dyn CommandApprover,
    stop: &CancellationToken,
) -> Result<Cleared, BlockedCommand> {
    let answer = match verdict {
        Verdict::Run(cleared) => Ok(cleared),
        Verdict::Refuse(refusal) => {
            let by = match refusal.by() {
                RefusedBy::Floor => "floor",
                RefusedBy::Deny { .. } => "approvals.deny",
            };
            tracing::warn!(by, "refused");
            decided(JudgedAs::Refused(&refusal))?;
            return Err(BlockedCommand::refused(&refusal));
        }
        Verdict::Ask(question) => {
            tracing::info!("needs a yes");
            ask.ask(question, stop).await
        }
    };
    match &answer {
        Ok(cleared) => decided(JudgedAs::Run(cleared))?,
        Err(denied) => decided(JudgedAs::Denied(denied))?,
    }
    Ok(answer?)
}

/// For one-shot runs, cron and whatever else has nobody to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOneToAsk;

impl CommandApprover for NoOneToAsk {
    fn ask<'a>(
        &'a self,
        question: ApprovalQuestion,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
        let denied = CommandDenied(format!(
            "This needs a person's yes ({}), and there is nobody to ask, so it is refused. Nothing was \
             run. The operator can put it on command_allowlist or use a sealed backend.",
            question.reasons().join("; ")
        ));
        future::ready(Err(denied)).boxed()
    }
}
