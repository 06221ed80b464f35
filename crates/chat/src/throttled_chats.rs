//! Waiting when a platform says so and does not say for whom.
//!
//! A limit may be for one chat or for the whole account. The first one holds its chat; a second chat that is
//! refused while the first is still held means everybody.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::ChatId;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct ThrottledChats {
    holds: Mutex<ThrottleHolds>,
}

#[derive(Debug, Default)]
struct ThrottleHolds {
    everyone: Option<Instant>,
    chats: HashMap<ChatId, Instant>,
}

impl ThrottledChats {
    /// How long this chat has to wait from now on.
    pub fn wait(&self, chat: &ChatId) -> Duration {
        let holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let until = holds.chats.get(chat).copied().max(holds.everyone);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    /// This chat was refused and has to wait so long.
    pub fn hold(&self, chat: &ChatId, wait: Duration) {
        let now = Instant::now();
        let until = now + wait;
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose time is over go first, or a chat that was held an hour ago would count as the
        // second and hold everybody.
        holds.chats.retain(|_, until| *until > now);
        let everybody_waits = holds.everyone.is_some_and(|until| until > now);
        if everybody_waits || holds.chats.keys().any(|held| held != chat) {
            holds.everyone = holds.everyone.max(Some(until));
        }
        holds.chats.insert(chat.clone(), until);
        // Who waits no longer than everybody need not be remembered, so that this stays small.
        let everyone = holds.everyone;
        holds.chats.retain(|_, until| Some(*until) > everyone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn one_chat_waits_alone_and_two_make_everybody_wait() {
        let pace = ThrottledChats::default();
        let [one, two, three] = [1, 2, 3].map(ChatId::from);
        pace.hold(&one, MINUTE);
        assert_eq!((pace.wait(&one), pace.wait(&two)), (MINUTE, Duration::ZERO));
        pace.hold(&two, MINUTE);
        assert_eq!(pace.wait(&three), MINUTE);
        tokio::time::advance(MINUTE).await;
        assert_eq!(pace.wait(&one) + pace.wait(&three), Duration::ZERO);
        pace.hold(&three, MINUTE);
        assert_eq!(pace.wait(&one), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_chats_that_wait_are_not_remembered_each() {
        let pace = ThrottledChats::default();
        for chat in 0..1000 {
            pace.hold(&ChatId::from(chat), MINUTE);
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(pace.holds.lock().unwrap().chats.len() <= 1);
        assert!(pace.wait(&ChatId::from(-1)) > MINUTE / 2);
    }
}
