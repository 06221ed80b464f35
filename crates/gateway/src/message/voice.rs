//! Voice messages, written down by an endpoint that the operator chose.

use std::sync::Arc;

use hermetic_chat::{ChatReply, ReplyRule};
use hermetic_services::TranscriptionService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::message::AcceptedMessage;
use crate::spending::ServiceMeter;

/// Who writes voice messages down, and whether people are shown what was understood.
#[derive(Clone, Debug)]
pub struct VoiceNotes {
    service: Option<TranscriptionService>,
    echo: bool,
    /// Recordings that are held in memory.
    slots: Arc<Semaphore>,
}

/// Recordings at once, of up to 25 MB each.
const AT_ONCE: usize = 4;

/// What is known of a recording.
pub(super) enum HeardVoice {
    Words(String),
    /// Why there are none, in words for the model.
    Nothing(String),
}

impl VoiceNotes {
    pub fn new(service: Option<TranscriptionService>, echo: bool) -> Self {
        Self {
            service,
            echo,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// How much of a recording is wanted; nothing where nobody listens to it.
    pub(super) fn most_bytes(&self) -> usize {
        match self.service {
            Some(_) => TranscriptionService::MOST_AUDIO,
            None => 0,
        }
    }

    /// The right to hold one recording. Others may be at theirs for long, and whoever says `/stop` does not
    /// wait for them.
    pub(super) async fn slot(&self, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        self.service.as_ref()?;
        let slot = Arc::clone(&self.slots).acquire_owned();
        stop.run_until_cancelled(slot).await?.ok()
    }

    /// `audio` is empty where it was too long to be kept.
    pub(super) async fn hear(
        &self,
        audio: Vec<u8>,
        name: &str,
        meter: &ServiceMeter<'_>,
    ) -> HeardVoice {
        let Some(service) = &self.service else {
            return HeardVoice::Nothing(
                "voice messages are not written down here, so nobody knows what it says".to_owned(),
            );
        };
        if audio.is_empty() {
            return HeardVoice::Nothing("it is empty, or too long to be written down".to_owned());
        }
        let charge = match meter.charge_transcript().await {
            Ok(charge) => charge,
            Err(refused) => {
                return HeardVoice::Nothing(format!("it was not written down: {refused}"));
            }
        };
        match service.transcribe(audio, name).await {
            Ok(words) if words.is_empty() => {
                HeardVoice::Nothing("no words were understood in it".to_owned())
            }
            Ok(words) => HeardVoice::Words(words),
            Err(error) => {
                tracing::warn!(%error, "a voice message was not written down");
                if !error.may_cost() {
                    meter.give_back(charge).await;
                }
                HeardVoice::Nothing(format!("it could not be written down: {error}"))
            }
        }
    }
}

impl Gateway {
    /// Shows the person what was understood.
    pub(super) async fn echo_words(&self, message: &AcceptedMessage, words: &str) {
        let said = message.said();
        let chat = self.outbox.chat(&said.account);
        let chat = chat.filter(|chat| chat.capabilities().replies == ReplyRule::Free);
        let Some(chat) = chat.filter(|_| self.voice.echo) else {
            return;
        };
        let text = self.redactor.redact(format!("🎙️ \"{words}\""));
        let sent = chat.send(&said.place, &ChatReply::text(text.into())).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "what was understood could not be shown");
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use hermetic_services::TranscriptionSettings;

    use super::*;

    #[tokio::test]
    async fn whoever_is_stopped_does_not_wait_for_the_recordings_of_others() {
        let service = TranscriptionService::new(TranscriptionSettings {
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            model: "m".to_owned(),
            key: None,
            key_setting: "KEY",
            language: None,
            proxy: None,
        });
        let voice = VoiceNotes::new(Some(service.unwrap()), false);
        let (never, stop) = (CancellationToken::new(), CancellationToken::new());
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(voice.slot(&never).await.unwrap());
        }
        let waiting = voice.slot(&stop);
        tokio::pin!(waiting);
        assert!((&mut waiting).now_or_never().is_none());
        stop.cancel();
        assert!(waiting.await.is_none());
    }
}
