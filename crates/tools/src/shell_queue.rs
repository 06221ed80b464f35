//! Commands for one conversation's persistent shell wait for each other, in the order they came.
//!
//! A model and its client call in parallel, and people write the next command before the last has ended;
//! the shell runs one at a time. A command is also judged in its turn and not before: what runs first may
//! change the folder that the next one is judged for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::ConversationKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Commands that wait for one shell, besides the one that runs.
const MOST_WAITING_COMMANDS: usize = 32;

/// The queues of all shells. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShellQueues(Arc<Mutex<HashMap<ConversationKey, ShellQueue>>>);

/// It exists while somebody is in it.
#[derive(Debug)]
struct ShellQueue {
    /// Hands its one permit out in the order it was asked for.
    turn: Arc<Semaphore>,
    /// Those who wait and the one whose turn it is.
    entered: usize,
}

/// The shell is whoever holds this.
#[derive(Debug)]
pub(crate) struct ShellTurn {
    // Dropped in this order: the turn is free before the queue may be forgotten, or whoever comes
    // next would make another one beside it.
    _permit: OwnedSemaphorePermit,
    _entered: QueuePlace,
}

#[derive(Debug)]
struct QueuePlace {
    queues: ShellQueues,
    conversation: ConversationKey,
}

/// Why it is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTurn {
    #[error(
        "{MOST_WAITING_COMMANDS} commands wait for this shell already, so this one was not run; send it again \
         when some of them have ended"
    )]
    Full,
    #[error("interrupted while it waited for the command before it; not run")]
    Stopped,
}

impl ShellQueues {
    /// Waits for everybody who came before.
    pub(crate) async fn turn(
        &self,
        conversation: &ConversationKey,
        stop: &CancellationToken,
    ) -> Result<ShellTurn, NoTurn> {
        let (turn, entered) = self.enter(conversation)?;
        // In this order: who was interrupted must not be handed the shell in the same moment.
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(NoTurn::Stopped),
            // Nobody closes it.
            permit = turn.acquire_owned() => permit.map_err(|_| NoTurn::Stopped)?,
        };
        Ok(ShellTurn {
            _permit: permit,
            _entered: entered,
        })
    }

    fn enter(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(Arc<Semaphore>, QueuePlace), NoTurn> {
        let mut queues = self.lock();
        let queue = queues
            .entry(conversation.clone())
            .or_insert_with(|| ShellQueue {
                turn: Arc::new(Semaphore::new(1)),
                entered: 0,
            });
        // The one whose turn it is counts as well, besides those who wait.
        if queue.entered > MOST_WAITING_COMMANDS {
            return Err(NoTurn::Full);
        }
        queue.entered += 1;
        let entered = QueuePlace {
            queues: self.clone(),
            conversation: conversation.clone(),
        };
        Ok((Arc::clone(&queue.turn), entered))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, ShellQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(&self.conversation) {
            queue.entered -= 1;
            if queue.entered == 0 {
                queues.remove(&self.conversation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key(name: &str) -> ConversationKey {
        ConversationKey::new(name)
    }

    #[tokio::test]
    async fn turns_come_in_order_and_no_other_conversation_waits() {
        let (queues, stop) = (ShellQueues::default(), CancellationToken::new());
        let first = queues.turn(&key("a"), &stop).await.unwrap();
        let (alice, bob) = (key("a"), key("b"));
        let mut second = Box::pin(queues.turn(&alice, &stop));
        assert!(second.as_mut().now_or_never().is_none());
        let mut third = Box::pin(queues.turn(&alice, &stop));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(queues.turn(&bob, &stop).now_or_never().unwrap().is_ok());
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "overtaken");
        let second = second.now_or_never().expect("its turn").unwrap();
        drop(second);
        drop(third.now_or_never().expect("its turn").unwrap());
        assert!(queues.lock().is_empty(), "queues of nobody are left");
    }

    #[tokio::test]
    async fn a_full_queue_says_so_and_one_that_is_stopped_leaves_it() {
        let (queues, go_on) = (ShellQueues::default(), CancellationToken::new());
        let alice = key("a");
        let _runs = queues.turn(&alice, &go_on).await.unwrap();
        let stop = CancellationToken::new();
        let mut waiting: Vec<_> = (0..MOST_WAITING_COMMANDS)
            .map(|_| Box::pin(queues.turn(&alice, &stop)))
            .collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        let refused = queues.turn(&alice, &go_on).now_or_never().unwrap();
        assert_eq!(refused.unwrap_err(), NoTurn::Full);
        stop.cancel();
        for one in waiting {
            assert_eq!(one.await.unwrap_err(), NoTurn::Stopped);
        }
        assert!(queues.turn(&alice, &go_on).now_or_never().is_none());
    }
}
