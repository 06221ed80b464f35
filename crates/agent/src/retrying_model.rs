//! Trying again, waiting as long as we were asked to, and at last asking somebody else.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_stream::stream;
use futures::stream::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::{Deltas, LanguageModel, Message, ModelError, ModelRequest, ReplyDelta, TokenPrice};

/// Models in the order in which they are tried.
///
/// A failure that passes is tried again after a pause that doubles; a model that keeps failing, or
/// does not accept our key, gives way to the next. An answer that broke off is begun anew, which
/// listeners learn by [`ReplyDelta::Restarted`]. Nothing the model asked for has been done by then, so
/// nothing is done twice.
///
/// A refusal of a request with images or files is handed back first: the caller asks once more without them,
/// and learns what the first model takes. Only a model that refuses words too gives way.
#[derive(Debug)]
pub struct RetryingModel {
    models: Vec<Arc<dyn LanguageModel>>,
    patience: ModelRetries,
    /// Whether the first model refused words alone when it was last asked. A habit that guards nothing.
    first_refuses_words: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelRetries {
    /// How often one model is asked before the next.
    pub attempts: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// A model that wants us to wait longer than this gives way to the next.
    pub longest_retry_after: Duration,
}

impl Default for ModelRetries {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(120),
        }
    }
}

impl RetryingModel {
    pub fn new(
        first: Arc<dyn LanguageModel>,
        fallbacks: impl IntoIterator<Item = Arc<dyn LanguageModel>>,
        patience: ModelRetries,
    ) -> Self {
        let mut models = vec![first];
        models.extend(fallbacks);
        Self {
            models,
            patience,
            first_refuses_words: AtomicBool::new(false),
        }
    }
}

impl LanguageModel for RetryingModel {
    fn name(&self) -> &str {
        self.models[0].name()
    }

    /// The highest of each kind, since any of them may answer; unknown if one of them is.
    fn price(&self) -> Option<TokenPrice> {
        let prices: Option<Vec<_>> = self.models.iter().map(|model| model.price()).collect();
        prices?.into_iter().reduce(TokenPrice::dearer)
    }

    /// As the first does: the others are for the hour in which it fails.
    fn takes_files(&self) -> bool {
        self.models[0].takes_files()
    }

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, stop: CancellationToken) -> Deltas<'a> {
        stream! {
            let mut last_error = ModelError::Stopped;
            for (place, model) in self.models.iter().enumerate() {
                if place > 0 {
                    yield Ok(ReplyDelta::GaveWay(model.name().into()));
                }
                for attempt in 1..=self.patience.attempts.max(1) {
                    let mut said_something = false;
                    let mut deltas = model.complete(ask, stop.clone());
                    let error = loop {
                        match deltas.next().await {
                            Some(Ok(finish @ ReplyDelta::Finish(_))) => {
                                if place == 0 {
                                    self.first_refuses_words.store(false, Ordering::Relaxed);
                                }
                                yield Ok(finish);
                                return;
                            }
                            Some(Ok(delta)) => {
                                said_something = true;
                                yield Ok(delta);
                            }
                            Some(Err(error)) => break error,
                            None => break ModelError::Cut { model: model.name().to_owned() },
                        }
                    };
                    // The connection ends before the pause, or the provider goes on writing, at our
                    // cost, what nobody reads.
                    drop(deltas);
                    // Also where nothing was said: what the provider worked on is paid for. Who stops it
                    // keeps what was said.
                    if (said_something || error.may_be_billed()) && error != ModelError::Stopped {
                        yield Ok(ReplyDelta::Restarted);
                    }
                    tracing::warn!(model = model.name(), attempt, %error, "the model failed");
                    let pause = self.patience.pause_after(&error, attempt);
                    let is_about_media = place == 0 && self.may_be_about_media(&error, ask);
                    let stops_here = is_about_media || !self.gives_way(&error);
                    last_error = error;
                    if stops_here {
                        yield Err(last_error);
                        return;
                    }
                    let Some(pause) = pause else { break };
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = stop.cancelled() => {
                            yield Err(ModelError::Stopped);
                            return;
                        }
                    }
                }
            }
            yield Err(last_error);
        }
        .boxed()
    }
}

impl RetryingModel {
    /// Whether another attempt or another model may do better. A conversation that is too long is
    /// for the caller to shorten.
    fn gives_way(&self, error: &ModelError) -> bool {
        match error {
            ModelError::Stopped
            | ModelError::ContextTooLong { .. }
            | ModelError::AskTooLarge { .. } => false,
            ModelError::KeyRejected { .. }
            | ModelError::OutOfCredit { .. }
            | ModelError::Refused { .. }
            | ModelError::TooLarge { .. } => self.models.len() > 1,
            _ => true,
        }
    }

    /// Whether the first model may take this request without its images and files. The words of such refusals
    /// differ.
    fn may_be_about_media(&self, error: &ModelError, ask: ModelRequest<'_>) -> bool {
        if !matches!(error, ModelError::Refused { .. }) {
            return false;
        }
        let has_media = ask.messages.iter().any(Message::has_media);
        if !has_media {
            self.first_refuses_words.store(true, Ordering::Relaxed);
        }
        has_media && !self.first_refuses_words.load(Ordering::Relaxed)
    }
}

/// The shortest wait, whatever a server asks for.
const AT_ONCE: Duration = Duration::from_millis(100);

impl ModelRetries {
    /// How long to wait before asking the same model again, or not at all.
    fn pause_after(&self, error: &ModelError, attempt: u32) -> Option<Duration> {
        if !error.is_passing() || attempt >= self.attempts {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            // A server that says "at once" each time is not asked at full speed.
            let wait = asked.max(self.first_pause.min(AT_ONCE));
            return (asked <= self.longest_retry_after).then_some(wait);
        }
        let doubled = self.first_pause.saturating_mul(1 << (attempt - 1).min(16));
        Some(with_jitter(doubled.min(self.longest_pause)))
    }
}

/// Between the pause and one and a half of it, so that many conversations do not knock at once.
fn with_jitter(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 512;
    pause + pause.mul_f64(f64::from(u16::try_from(random).unwrap_or(0)) / 1024.0)
}
