//! The seam to the person who decides what a sandbox cannot undo.

use std::fmt;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_policy::{Cleared, Question, Refusal, RefusedBy, Verdict};
use hermetic_types::{BackendKind, Command};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::Blocked;

/// Puts a question to somebody who may answer it.
///
/// What an implementer promises: a yes comes from a person who may give it (or stands from one given
/// before, for exactly this), the wait is bounded and ends soon after `stop` is cancelled, and
/// silence, doubt and failure are a no.
pub trait Ask: Send + Sync + fmt::Debug {
    fn ask<'a>(
        &'a self,
        question: Question,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, Denied>>;

    /// Learns what became of a command, before anything runs. A command that cannot be written down
    /// where that is wanted does not run.
    fn decided(&self, _: Decided<'_>) -> Result<(), Denied> {
        Ok(())
    }
}

/// A command that was judged, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    pub backend: BackendKind,
    pub command: &'a Command,
    pub as_what: Judged<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    Run(&'a Cleared),
    Refused(&'a Refusal),
    Denied(&'a Denied),
}

impl Judged<'_> {
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
pub struct Denied(pub String);

/// What becomes of a verdict: a person is asked where it wants one, and `decided` learns of it before
/// anything is done.
pub(crate) async fn settle(
    verdict: Verdict,
    decided: impl Fn(Judged<'_>) -> Result<(), Denied>,
    ask: &dyn Ask,
    stop: &CancellationToken,
) -> Result<Cleared, Blocked> {
    let answer = match verdict {
        Verdict::Run(cleared) => Ok(cleared),
        Verdict::Refuse(refusal) => {
            let by = match refusal.by() {
                RefusedBy::Floor => "floor",
                RefusedBy::Deny { .. } => "approvals.deny",
            };
            tracing::warn!(by, "refused");
            decided(Judged::Refused(&refusal))?;
            return Err(Blocked::refused(&refusal));
        }
        Verdict::Ask(question) => {
            tracing::info!("needs a yes");
            ask.ask(question, stop).await
        }
    };
    match &answer {
        Ok(cleared) => decided(Judged::Run(cleared))?,
        Err(denied) => decided(Judged::Denied(denied))?,
    }
    Ok(answer?)
}

/// For one-shot runs, cron and whatever else has nobody to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOneToAsk;

impl Ask for NoOneToAsk {
    fn ask<'a>(
        &'a self,
        question: Question,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, Denied>> {
        let denied = Denied(format!(
            "This needs a person's yes ({}), and there is nobody to ask, so it is refused. Nothing was \
             run. The operator can put it on command_allowlist or use a sealed backend.",
            question.reasons().join("; ")
        ));
        future::ready(Err(denied)).boxed()
    }
}
