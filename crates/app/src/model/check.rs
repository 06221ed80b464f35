//! One small question to a model, to see whether it answers.

use std::time::{Duration, Instant};

use futures::StreamExt;
use hermetic_agent::{LanguageModel, Message, ModelError, ModelRequest, ReplyDelta, TokenUsage};
use hermetic_types::SystemClock;
use tokio_util::sync::CancellationToken;

use super::ConfiguredModel;

/// What came back.
#[derive(Clone, Debug)]
pub struct CheckedModel {
    /// The beginning of what it said, or why it did not.
    pub outcome: Result<String, String>,
    pub usage: TokenUsage,
    pub took: Duration,
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
            outcome: Err(format!("no whole answer in {} seconds", PATIENCE.as_secs())),
            usage: TokenUsage::default(),
            took: Duration::ZERO,
        };
        match self.connect(SystemClock::shared()) {
            Ok(model) => {
                let asked = ask(&model, &mut checked.usage);
                if let Ok(outcome) = tokio::time::timeout(PATIENCE, asked).await {
                    checked.outcome = outcome.map_err(|error| error.to_string());
                }
            }
            Err(failure) => checked.outcome = Err(failure.to_string()),
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
            | ReplyDelta::Restarted => {}
        }
    }
    Ok(said.trim().chars().take(MOST_SHOWN).collect())
}
