//! The answer when nobody has configured a model.

use futures::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{Ask, Delta, Deltas, Finish, Model};

/// Says how to get a model, and what works without one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModel;

const TEXT: &str = "\
No model is configured, so I cannot think yet. The operator can change that in config.yaml:

model:
  default: <name of the model>
  base_url: <address of any OpenAI-compatible endpoint, ending in /v1>

with the key in .env as OPENAI_API_KEY (or OPENROUTER_API_KEY for OpenRouter), and a restart of the \
gateway.

Without a model, commands still run in this conversation's sandbox: /sh <command> runs a shell \
command, /py <code> runs Python.";

impl Model for NoModel {
    fn name(&self) -> &str {
        "no model"
    }

    fn complete<'a>(&'a self, _ask: Ask<'a>, _stop: CancellationToken) -> Deltas<'a> {
        stream::iter([
            Ok(Delta::Text(TEXT.to_owned())),
            Ok(Delta::Finish(Finish::Done)),
        ])
        .boxed()
    }
}
