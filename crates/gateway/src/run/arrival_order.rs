//! Messages of one place are written down in the order in which they came.
//!
//! Whether somebody may speak is looked up for several messages at once, and a later look may end before an
//! earlier one. The store numbers messages as they are handed in, and whoever takes them up after a crash goes by
//! those numbers.

use std::collections::HashMap;

use hermetic_types::{AccountId, ChatPlace};
use tokio::sync::oneshot;

/// Gives each message its turn.
#[derive(Debug, Default)]
pub(crate) struct ArrivalOrder {
    /// Of the last message of each place: closed when it was handed to the store.
    last: HashMap<(AccountId, ChatPlace), oneshot::Receiver<()>>,
}

/// The turn of one message. Given up however it ends, but never before that of the message before it.
#[derive(Debug)]
pub(crate) struct ArrivalTurn {
    before: Option<oneshot::Receiver<()>>,
    next: Option<oneshot::Sender<()>>,
}

impl ArrivalOrder {
    pub(crate) fn turn_at(&mut self, account: &AccountId, place: &ChatPlace) -> ArrivalTurn {
        let (next, passed) = oneshot::channel();
        let place = (account.clone(), place.clone());
        ArrivalTurn {
            before: self.last.insert(place, passed),
            next: Some(next),
        }
    }

    /// Nothing is on its way any more.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}

impl ArrivalTurn {
    /// For a message that came alone.
    pub(crate) fn alone() -> Self {
        Self {
            before: None,
            next: None,
        }
    }

    /// Waits until the message before it was handed over, or turned away.
    pub(crate) async fn comes(&mut self) {
        if let Some(before) = self.before.take() {
            // Nobody says anything: it is over when the other end is gone.
            let _ = before.await;
        }
    }

    /// The next one's turn.
    pub(crate) fn is_over(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use hermetic_types::{ChatId, ChatKind, Platform};

    use super::*;

    fn place(chat: &str) -> ChatPlace {
        ChatPlace {
            chat: ChatId::new(chat).unwrap(),
            kind: ChatKind::Dm,
            thread: None,
        }
    }

    #[tokio::test]
    async fn a_message_waits_for_those_before_it_of_its_place_and_for_no_others() {
        let mut order = ArrivalOrder::default();
        let account = AccountId::from(Platform::Telegram);
        let mut first = order.turn_at(&account, &place("7"));
        let mut second = order.turn_at(&account, &place("7"));
        let mut third = order.turn_at(&account, &place("7"));
        let mut other = order.turn_at(&account, &place("8"));
        assert!(other.comes().now_or_never().is_some());
        assert!(first.comes().now_or_never().is_some());
        {
            let waiting = second.comes();
            tokio::pin!(waiting);
            assert!((&mut waiting).now_or_never().is_none());
            first.is_over();
            assert!(waiting.now_or_never().is_some());
        }
        assert!((&mut Box::pin(third.comes())).now_or_never().is_none());
        // However it ends.
        drop(second);
    }
}
