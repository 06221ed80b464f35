//! Threads in which we were named: there, what follows is meant for us without our name.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_chat::{AdapterState, AdapterStateError, InMemoryState, SaveDurability};
use hermetic_types::ChatId;

use crate::ts::SlackTimestamp;

const PREFIX: &str = "thread:";
/// The ones begun last are kept; in an older one somebody names us again.
const KEPT: usize = 1000;

#[derive(Debug)]
pub(crate) struct JoinedThreads {
    state: Arc<dyn AdapterState>,
    /// By time, so that the oldest goes first.
    threads: Mutex<BTreeSet<(SlackTimestamp, ChatId)>>,
}

impl JoinedThreads {
    pub(crate) async fn load(state: Arc<dyn AdapterState>) -> Result<Self, AdapterStateError> {
        let kept = state.load_all(PREFIX).await?;
        let threads = kept.iter().filter_map(|(key, _)| {
            let (ts, channel) = key.strip_prefix(PREFIX)?.split_once(':')?;
            Some((SlackTimestamp::parse(ts)?, ChatId::new(channel).ok()?))
        });
        let threads = Mutex::new(threads.collect());
        Ok(Self { state, threads })
    }

    /// Of a bot that was never named.
    pub(crate) fn none() -> Self {
        Self {
            state: Arc::new(InMemoryState::default()),
            threads: Mutex::default(),
        }
    }

    pub(crate) fn contains(&self, channel: &ChatId, thread: SlackTimestamp) -> bool {
        self.lock().contains(&(thread, channel.clone()))
    }

    pub(crate) async fn join(
        &self,
        channel: &ChatId,
        thread: SlackTimestamp,
    ) -> Result<(), AdapterStateError> {
        let (new, oldest) = {
            let mut threads = self.lock();
            let new = threads.insert((thread, channel.clone()));
            let full = threads.len() > KEPT;
            (new, full.then(|| threads.pop_first()).flatten())
        };
        if new {
            let key = key(thread, channel);
            self.state.save(&key, "", SaveDurability::Soon).await?;
        }
        if let Some((thread, channel)) = oldest {
            self.state.remove(&key(thread, &channel)).await?;
        }
        Ok(())
    }

    /// The ones in this channel.
    pub(crate) fn of(&self, channel: &ChatId) -> Vec<SlackTimestamp> {
        let threads = self.lock();
        let here = threads.iter().filter(|(_, other)| other == channel);
        here.map(|(thread, _)| *thread).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(SlackTimestamp, ChatId)>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(thread: SlackTimestamp, channel: &ChatId) -> String {
    format!("{PREFIX}{thread}:{channel}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_is_known_after_a_restart_and_the_oldest_are_forgotten() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let channel = ChatId::new("C1").unwrap();
        let threads = JoinedThreads::load(Arc::clone(&state)).await.unwrap();
        for seconds in 0..=KEPT as u64 {
            threads
                .join(&channel, SlackTimestamp::at(seconds))
                .await
                .unwrap();
        }
        let next = JoinedThreads::load(state).await.unwrap();
        assert!(
            next.contains(&channel, SlackTimestamp::at(1))
                && !next.contains(&channel, SlackTimestamp::at(0))
        );
        assert!(!next.contains(&ChatId::new("C2").unwrap(), SlackTimestamp::at(1)));
        assert_eq!(next.of(&channel).len(), KEPT);
    }
}
