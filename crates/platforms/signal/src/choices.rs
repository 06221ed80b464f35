//! Reactions instead of buttons.
//!
//! Signal has no buttons, so a message that asks says which reaction means what, and a reaction to it comes
//! back as a press. What each means is kept across a restart: a question outlives the process.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, AdapterStateError, Button, Saving};
use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::timeout;
use tracing::warn;

/// How many choices a message may offer.
pub(crate) const MOST: usize = 9;

const YES: &str = "👍";
const NO: &str = "👎";
/// For what stands between the first and the last choice.
const BETWEEN: [&str; MOST - 2] = ["2⃣", "3⃣", "4⃣", "5⃣", "6⃣", "7⃣", "8⃣"];

/// What the keys of kept choices begin with.
const PREFIX: &str = "choices:";
/// How long a reaction waits for questions that are being sent. Nothing else is heard meanwhile.
const FOR_QUESTIONS: Duration = Duration::from_secs(2);
/// A question is answered or expired long before.
const KEPT_FOR_MILLIS: i64 = 7 * 24 * 3600 * 1000;

/// The reactions to one message, and what each of them means.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choices(Vec<Choice>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    emoji: String,
    data: String,
}

#[derive(Debug)]
pub(crate) struct KeptChoices {
    state: Arc<dyn AdapterState>,
    /// Held for reading while a question is on its way.
    asking: RwLock<()>,
}

impl Choices {
    /// The choices that these buttons are, and the words that say so. The first is a thumb up, the last a
    /// thumb down, which are the two that Signal offers first.
    pub(crate) fn of(buttons: &[Vec<Button>]) -> Option<(Self, String)> {
        let buttons: Vec<_> = buttons.iter().flatten().take(MOST).collect();
        let last = buttons.len().checked_sub(1)?;
        let emoji = |index: usize| match index {
            0 => YES,
            index if index == last => NO,
            index => BETWEEN[index - 1],
        };
        let named: Vec<_> = buttons
            .iter()
            .enumerate()
            .map(|(index, button)| format!("{} {}", emoji(index), button.label()))
            .collect();
        let choices = buttons.iter().enumerate().map(|(index, button)| Choice {
            emoji: plain(emoji(index)),
            data: button.data().to_owned(),
        });
        let words = format!("\n\nOr react to this message: {}", named.join(", "));
        Some((Self(choices.collect()), words))
    }

    /// What this reaction means.
    pub(crate) fn data(&self, emoji: &str) -> Option<&str> {
        let emoji = plain(emoji);
        let chosen = self.0.iter().find(|choice| choice.emoji == emoji)?;
        Some(&chosen.data)
    }
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
    pub(crate) async fn keep(&self, message: u64, choices: &Choices) {
        let value = serde_json::to_string(choices).unwrap_or_default();
        let kept = self.state.save(&key(message), &value, Saving::OnDisk).await;
        if let Err(error) = kept {
            // The answer can still be typed.
            warn!(%error, "what reactions to a question mean could not be kept");
        }
    }

    pub(crate) async fn find(&self, message: u64) -> Result<Option<Choices>, AdapterStateError> {
        if let Some(found) = self.load(message).await? {
            return Ok(Some(found));
        }
        // Whether they came to their end in time or not: there is nothing more to wait for.
        let _ = timeout(FOR_QUESTIONS, self.asking.write()).await;
        self.load(message).await
    }

    async fn load(&self, message: u64) -> Result<Option<Choices>, AdapterStateError> {
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

/// Without the colour of a skin and the sign that asks for a picture: phones add both.
fn plain(emoji: &str) -> String {
    let adds = |c: &char| matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    emoji.chars().filter(|c| !adds(c)).collect()
}

#[cfg(test)]
mod tests {
    use hermetic_chat::InMemoryState;

    use super::*;

    fn buttons(labels: &[&str]) -> Vec<Vec<Button>> {
        let button = |label: &&str| Button::new(*label, format!("q:{label}")).unwrap();
        vec![labels.iter().map(button).collect()]
    }

    #[test]
    fn the_words_say_what_each_reaction_means() {
        let (choices, words) = Choices::of(&buttons(&["Once", "Session", "Deny"])).unwrap();
        assert_eq!(
            words.trim(),
            "Or react to this message: 👍 Once, 2⃣ Session, 👎 Deny"
        );
        for (emoji, data) in [
            ("👍", Some("q:Once")),
            ("👍🏿", Some("q:Once")),
            ("2️⃣", Some("q:Session")),
            ("👎🏻", Some("q:Deny")),
            ("❤️", None),
            ("", None),
        ] {
            assert_eq!(choices.data(emoji), data, "{emoji}");
        }
        assert!(Choices::of(&[]).is_none());
        let (many, _) = Choices::of(&buttons(&["x"; 30])).unwrap();
        assert_eq!(many.0.len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reaction_may_be_faster_than_the_number_of_its_question() {
        let kept = KeptChoices::new(Arc::new(InMemoryState::default()));
        let (choices, _) = Choices::of(&buttons(&["Once", "Deny"])).unwrap();
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
        let (choices, _) = Choices::of(&buttons(&["Once", "Deny"])).unwrap();
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
