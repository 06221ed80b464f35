//! One small question to a model, to see whether it answers.

use std::time::{Duration, Instant};

use futures::StreamExt;
use hermetic_agent::{LanguageModel, Message, ModelError, ModelRequest, ReplyDelta, TokenUsage};
use hermetic_types::SystemClock;
use tokio_util::sync::CancellationToken;

use super::ConfiguredModel;
use crate::AppFailure;

/// What came back.
#[derive(Clone, Debug)]
pub struct CheckedModel {
    /// The beginning of what it said, or why it did not.
    pub outcome: Result<String, CheckFailure>,
    pub usage: TokenUsage,
    pub took: Duration,
}

/// Why a model did not answer, and what may help.
#[derive(Clone, Debug)]
pub struct CheckFailure {
    pub what: String,
    pub remedy: String,
}

/// Enough for a model that thinks before it says a word.
const MOST_OUTPUT: u32 = 512;

/// A person waits for this.
const PATIENCE: Duration = Duration::from_secs(60);

const MOST_SHOWN: usize = 60;

impl ConfiguredModel {
    /// Asks once, without a second attempt and without a fallback.
    pub async fn check(mut self) -> CheckedModel {
        self.settings.max_output_tokens = Some(MOST_OUTPUT);
        // A small question needs no thought, and some models refuse to think within so little room.
        self.settings.effort = None;
        self.settings.silence = self.settings.silence.min(PATIENCE);
        let started = Instant::now();
        let mut checked = CheckedModel {
            outcome: Err(CheckFailure {
                what: format!("no whole answer in {} seconds", PATIENCE.as_secs()),
                remedy: "look at the network and at model.base_url".to_owned(),
            }),
            usage: TokenUsage::default(),
            took: Duration::ZERO,
        };
        match self.connect(SystemClock::shared()) {
            Ok(model) => {
                let asked = ask(&model, &mut checked.usage);
                if let Ok(outcome) = tokio::time::timeout(PATIENCE, asked).await {
                    checked.outcome = outcome.map_err(|error| CheckFailure {
                        what: AppFailure::caused(&error, "").to_string(),
                        remedy: remedy(&error).to_owned(),
                    });
                }
            }
            Err(failure) => {
                checked.outcome = Err(CheckFailure {
                    what: failure.to_string(),
                    remedy: failure.remedy().to_owned(),
                });
            }
        }
        checked.took = started.elapsed();
        checked
    }
}

async fn ask(model: &dyn LanguageModel, usage: &mut TokenUsage) -> Result<String, ModelError> {
    let messages = [Message::user("Answer with the one word: ok")];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let mut deltas = model.complete(ask, CancellationToken::new());
    let mut said = String::new();
    while let Some(delta) = deltas.next().await {
        match delta? {
            ReplyDelta::Text(piece) => said.push_str(&piece),
            ReplyDelta::Usage(figures) => *usage = figures,
            ReplyDelta::Finish(_) => break,
            ReplyDelta::ToolCall(_)
            | ReplyDelta::Opaque(_)
            | ReplyDelta::Thinking(_)
            | ReplyDelta::GaveWay(_)
            | ReplyDelta::Restarted => {}
        }
    }
    Ok(said.trim().chars().take(MOST_SHOWN).collect())
}

fn remedy(error: &ModelError) -> &'static str {
    match error {
        ModelError::KeyRejected { .. } => "get a key from the provider, and try again",
        ModelError::Unreachable { .. } => {
            "look at the network, gateway.proxy and model.base_url; without a network nothing can be tried"
        }
        ModelError::Refused { .. } => "is the name of the model right?",
        _ => "try again in a moment",
    }
}
