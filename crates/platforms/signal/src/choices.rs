//! Reactions instead of buttons.
//!
//! Signal has no buttons, so a message that asks says which reaction means what, and a reaction to it comes
//! back as a press. What each means is kept across a restart: a question outlives the process.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, AdapterStateError, ReactionChoices, SaveDurability};
use hermetic_types::Timestamp;
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::timeout;
use tracing::warn;

/// What the keys of kept choices begin with.
const PREFIX: &str = "choices:";
/// How long a reaction waits for questions that are being sent. Nothing else is heard meanwhile.
const FOR_QUESTIONS: Duration = Duration::from_secs(2);
/// A question is answered or expired long before.
const KEPT_FOR_MILLIS: i64 = 7 * 24 * 3600 * 1000;

#[derive(Debug)]
pub(crate) struct KeptChoices {
    state: Arc<dyn AdapterState>,
    /// Held for reading while a question is on its way.
    asking: RwLock<()>,
}

impl KeptChoices {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self {
            state,
            asking: RwLock::default(),
        }
    }

    /// Says that a question is being sent. Until this is dropped, reactions to what is not known wait a
    /// moment: members of a large group have it before the daemon has told us its number.
    pub(crate) async fn ask(&self) -> RwLockReadGuard<'_, ()> {
        self.asking.read().await
    }

    /// Keeps what reactions to the message with this timestamp mean.
    pub(crate) async fn keep(&self, message: u64, choices: &ReactionChoices) {
        let value = serde_json::to_string(choices).unwrap_or_default();
        let kept = self
            .state
            .save(&key(message), &value, SaveDurability::OnDisk)
            .await;
        if let Err(error) = kept {
            // The answer can still be typed.
            warn!(%error, "what reactions to a question mean could not be kept");
        }
    }

    pub(crate) async fn find(
        &self,
        message: u64,
    ) -> Result<Option<ReactionChoices>, AdapterStateError> {
        if let Some(found) = self.load(message).await? {
            return Ok(Some(found));
        }
        // Whether they came to their end in time or not: there is nothing more to wait for.
        let _ = timeout(FOR_QUESTIONS, self.asking.write()).await;
        self.load(message).await
    }

    async fn load(&self, message: u64) -> Result<Option<ReactionChoices>, AdapterStateError> {
        let kept = self.state.load(&key(message)).await?;
        Ok(kept.and_then(|value| serde_json::from_str(&value).ok()))
    }

    /// Forgets questions that nobody can answer any more.
    pub(crate) async fn tidy(&self, now: Timestamp) -> Result<(), AdapterStateError> {
        for (key, _) in self.state.load_all(PREFIX).await? {
            let asked = key
                .strip_prefix(PREFIX)
                .and_then(|at| at.parse::<i64>().ok());
            if asked.is_none_or(|asked| now.millis().saturating_sub(asked) > KEPT_FOR_MILLIS) {
                self.state.remove(&key).await?;
            }
        }
        Ok(())
    }
}

fn key(message: u64) -> String {
    format!("{PREFIX}{message}")
}

#[cfg(test)]
mod tests {
    use hermetic_chat::{InMemoryState, ReplyButton};

    use super::*;

    fn buttons(labels: &[&str]) -> Vec<Vec<ReplyButton>> {
        let button = |label: &&str| ReplyButton::new(*label, format!("q:{label}")).unwrap();
        vec![labels.iter().map(button).collect()]
    }

    #[tokio::test(start_paused = true)]
    async fn a_reaction_may_be_faster_than_the_number_of_its_question() {
        let kept = KeptChoices::new(Arc::new(InMemoryState::default()));
        let (choices, _) = ReactionChoices::of(&buttons(&["Once", "Deny"])).unwrap();
        let asking = kept.ask().await;
        let sending = async {
            tokio::task::yield_now().await;
            kept.keep(5000, &choices).await;
            drop(asking);
        };
        let (found, ()) = tokio::join!(kept.find(5000), sending);
        assert_eq!(found.unwrap().as_ref(), Some(&choices));
        // One that hangs is not waited for without end.
        let _asking = kept.ask().await;
        assert_eq!(kept.find(6000).await.unwrap(), None);
    }

    #[tokio::test]
    async fn choices_outlive_the_process_and_not_the_week() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let (choices, _) = ReactionChoices::of(&buttons(&["Once", "Deny"])).unwrap();
        KeptChoices::new(Arc::clone(&state))
            .keep(5000, &choices)
            .await;
        let kept = KeptChoices::new(state);
        assert_eq!(kept.find(5000).await.unwrap(), Some(choices));
        assert_eq!(kept.find(5001).await.unwrap(), None);
        kept.tidy(Timestamp::from_millis(6000)).await.unwrap();
        assert!(kept.find(5000).await.unwrap().is_some());
        kept.tidy(Timestamp::from_millis(5001 + KEPT_FOR_MILLIS))
            .await
            .unwrap();
        assert!(kept.find(5000).await.unwrap().is_none());
    }
}
