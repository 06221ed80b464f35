//! The answer when nobody has configured a model.

use futures::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{Deltas, FinishReason, LanguageModel, ModelRequest, ReplyDelta};

/// Says how to get a model, and what works without one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModel;

impl NoModel {
    /// What somebody does who wants one.
    pub const REMEDY: &str = "\
write model.default into config.yaml and a provider's key into .env (OPENROUTER_API_KEY, ANTHROPIC_API_KEY, \
GEMINI_API_KEY, OPENAI_API_KEY and others); for an endpoint of your own also model.base_url";
}

const WHAT_WORKS: &str = "\
Without a model, commands still run in this conversation's sandbox: /sh <command> runs a shell \
command, /py <code> runs Python.";

impl LanguageModel for NoModel {
    fn name(&self) -> &str {
        "no model"
    }

    fn complete<'a>(&'a self, _ask: ModelRequest<'a>, _stop: CancellationToken) -> Deltas<'a> {
        let text = format!(
            "No model is configured, so I cannot think yet. The operator can change that: {}. Then \
             restart the gateway.\n\n{WHAT_WORKS}",
            Self::REMEDY
        );
        stream::iter([
            Ok(ReplyDelta::Text(text)),
            Ok(ReplyDelta::Finish(FinishReason::Done)),
        ])
        .boxed()
    }
}
