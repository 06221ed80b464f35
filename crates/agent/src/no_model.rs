//! The answer when nobody has configured a model.

use futures::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{Ask, Delta, Deltas, Finish, Model};

/// Says how to get a model, and what works without one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModel;

impl NoModel {
    /// What somebody does who wants one.
    pub const REMEDY: &str = "\
write model.default and model.base_url (any OpenAI-compatible endpoint, ending in /v1) into config.yaml \
and its key into .env as OPENAI_API_KEY; with OPENROUTER_API_KEY no base_url is needed";
}

const WHAT_WORKS: &str = "\
Without a model, commands still run in this conversation's sandbox: /sh <command> runs a shell \
command, /py <code> runs Python.";

impl Model for NoModel {
    fn name(&self) -> &str {
        "no model"
    }

    fn complete<'a>(&'a self, _ask: Ask<'a>, _stop: CancellationToken) -> Deltas<'a> {
        let text = format!(
            "No model is configured, so I cannot think yet. The operator can change that: {}. Then \
             restart the gateway.\n\n{WHAT_WORKS}",
            Self::REMEDY
        );
        stream::iter([Ok(Delta::Text(text)), Ok(Delta::Finish(Finish::Done))]).boxed()
    }
}
