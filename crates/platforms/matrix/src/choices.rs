//! What reactions to our questions mean.
//!
//! Matrix has no buttons, so a message that asks says which reaction means what, and a reaction to it comes
//! back as a press. What each means is kept across a restart: a question outlives the process.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, AdapterStateError, ReactionChoices, SaveDurability};
use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::timeout;
use tracing::warn;

/// What the keys of kept questions begin with.
const PREFIX: &str = "question:";
/// How long a reaction waits for questions that are being sent. Nothing else is heard meanwhile.
const FOR_QUESTIONS: Duration = Duration::from_secs(2);
/// A question is answered or expired long before.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptQuestion {
    pub(crate) room: String,
    pub(crate) thread: Option<String>,
    pub(crate) choices: ReactionChoices,
    pub(crate) asked_at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct KeptQuestions {
    store: Arc<dyn AdapterState>,
    /// Held for reading while a question is on its way.
    asking: RwLock<()>,
}

impl KeptQuestions {
    pub(crate) fn new(store: Arc<dyn AdapterState>) -> Self {
        Self {
            store,
            asking: RwLock::default(),
        }
    }

    /// Says that a question is being sent. Until this is dropped, reactions to what is not known wait a
    /// moment: everybody has it before the homeserver has told us its name.
    pub(crate) async fn ask(&self) -> RwLockReadGuard<'_, ()> {
        self.asking.read().await
    }

    pub(crate) async fn keep(&self, event: &str, question: &KeptQuestion) {
        let value = serde_json::to_string(question).unwrap_or_default();
        let key = format!("{PREFIX}{event}");
        if let Err(error) = self.store.save(&key, &value, SaveDurability::OnDisk).await {
            // The answer can still be typed.
            warn!(%error, "what reactions to a question mean could not be kept");
        }
    }

    pub(crate) async fn find(
        &self,
        event: &str,
    ) -> Result<Option<KeptQuestion>, AdapterStateError> {
        if let Some(found) = self.load(event).await? {
            return Ok(Some(found));
        }
        // Whether they came to their end in time or not: there is nothing more to wait for.
        let _ = timeout(FOR_QUESTIONS, self.asking.write()).await;
        self.load(event).await
    }

    async fn load(&self, event: &str) -> Result<Option<KeptQuestion>, AdapterStateError> {
        let kept = self.store.load(&format!("{PREFIX}{event}")).await?;
        Ok(kept.and_then(|value| serde_json::from_str(&value).ok()))
    }

    /// Forgets questions that nobody can answer any more.
    pub(crate) async fn tidy(&self, now: Timestamp) -> Result<(), AdapterStateError> {
        for (key, value) in self.store.load_all(PREFIX).await? {
            let kept = serde_json::from_str::<KeptQuestion>(&value);
            if !kept.is_ok_and(|kept| now.since(kept.asked_at) <= KEPT_FOR) {
                self.store.remove(&key).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hermetic_chat::{InMemoryState, ReplyButton};

    use super::*;

    fn question() -> KeptQuestion {
        let button = |label: &str| ReplyButton::new(label, format!("q:{label}")).unwrap();
        let (choices, _) = ReactionChoices::of(&[vec![button("Once"), button("Deny")]]).unwrap();
        KeptQuestion {
            room: "!a".to_owned(),
            thread: None,
            choices,
            asked_at: Timestamp::from_millis(5000),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reaction_may_be_faster_than_the_name_of_its_question() {
        let kept = KeptQuestions::new(Arc::new(InMemoryState::default()));
        let asking = kept.ask().await;
        let sending = async {
            tokio::task::yield_now().await;
            kept.keep("$1", &question()).await;
            drop(asking);
        };
        let (found, ()) = tokio::join!(kept.find("$1"), sending);
        assert_eq!(found.unwrap(), Some(question()));
        // One that hangs is not waited for without end.
        let _asking = kept.ask().await;
        assert_eq!(kept.find("$2").await.unwrap(), None);
    }

    #[tokio::test]
    async fn questions_outlive_the_process_and_not_the_week() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        KeptQuestions::new(Arc::clone(&state))
            .keep("$1", &question())
            .await;
        let kept = KeptQuestions::new(state);
        let at = |after: Duration| Timestamp::from_millis(5000).plus(after);
        kept.tidy(at(KEPT_FOR)).await.unwrap();
        assert_eq!(kept.find("$1").await.unwrap(), Some(question()));
        kept.tidy(at(KEPT_FOR + Duration::from_secs(1)))
            .await
            .unwrap();
        assert_eq!(kept.find("$1").await.unwrap(), None);
    }
}
