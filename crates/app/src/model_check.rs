//! One small question to the configured model, for whoever sets it up.

use std::time::Duration;

use futures::StreamExt as _;
use hermetic_agent::{Message, ModelError, ModelRequest, ReplyDelta};
use hermetic_config::Config;
use hermetic_redact::Redacted;
use hermetic_types::SystemClock;
use tokio_util::sync::CancellationToken;

use super::model;
use crate::AppFailure;

/// Whoever waits at a keyboard; a model that is slower answers nobody either.
const PATIENCE: Duration = Duration::from_secs(45);

/// Asks the model for a word and returns what it said. The first word is enough.
pub async fn ask_model(config: &Config) -> Result<String, AppFailure> {
    let model = model::model(config, &SystemClock::shared())?;
    let question = Redacted::constant("Answer with the single word: ready");
    let messages = [Message::user(question)];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let stop = CancellationToken::new();
    let asking = async {
        let mut answer = model.complete(ask, stop.clone());
        let mut said = String::new();
        while let Some(delta) = answer.next().await {
            match delta? {
                ReplyDelta::Text(text) => said.push_str(&text),
                ReplyDelta::Finish(_) => break,
                _ => {}
            }
        }
        Ok::<_, ModelError>(said)
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(said)) => Ok(said.trim().chars().take(60).collect()),
        Ok(Err(error)) => Err(AppFailure::caused(&error, remedy(&error))),
        Err(_) => {
            stop.cancel();
            Err(AppFailure::new(
                format!("the model did not answer within {} s", PATIENCE.as_secs()),
                "look at the network and at model.base_url",
            ))
        }
    }
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
