//! Waiting when Meta says so: for one chat, or for all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::ChatId;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct SendPace {
    holds: Mutex<PaceHolds>,
}

#[derive(Debug, Default)]
struct PaceHolds {
    everyone: Option<Instant>,
    chats: HashMap<ChatId, Instant>,
}

/// Says whether one chat or everyone has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldScope {
    /// Messages to this one person.
    Chat,
    /// All of the number.
    Everyone,
}

impl SendPace {
    /// How long this chat has to wait from now on.
    pub(crate) fn wait(&self, chat: &ChatId) -> Duration {
        let holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let until = holds.chats.get(chat).copied().max(holds.everyone);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    pub(crate) fn hold(&self, whom: HoldScope, chat: &ChatId, wait: Duration) {
        let now = Instant::now();
        let until = now + wait;
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.chats.retain(|_, until| *until > now);
        match whom {
            HoldScope::Everyone => holds.everyone = holds.everyone.max(Some(until)),
            HoldScope::Chat => {
                holds.chats.insert(chat.clone(), until);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_person_who_was_sent_too_much_waits_alone() {
        let pace = SendPace::default();
        let [one, two] = [1, 2].map(ChatId::from);
        pace.hold(HoldScope::Chat, &one, MINUTE);
        assert_eq!((pace.wait(&one), pace.wait(&two)), (MINUTE, Duration::ZERO));
        pace.hold(HoldScope::Everyone, &one, MINUTE);
        assert_eq!(pace.wait(&two), MINUTE);
        tokio::time::advance(MINUTE).await;
        assert_eq!(pace.wait(&one) + pace.wait(&two), Duration::ZERO);
    }
}
