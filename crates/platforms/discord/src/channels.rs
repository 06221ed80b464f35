//! What is known about channels: which is private, which is a thread of which.
//!
//! The gateway describes a server's channels when a session begins, and not when it is resumed; what is
//! not known is asked for. Threads in which we take part are kept across restarts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use hermetic_types::{ChatId, ChatKind, ChatPlace};

use crate::dispatch::RawChannel;
use crate::snowflake::Snowflake;

/// What the keys of threads begin with.
const PREFIX: &str = "thread:";
/// Forgotten all at once beyond this; what is needed is asked for again.
const MOST_KNOWN: usize = 50_000;
/// Threads in which we take part, each a row.
const MOST_JOINED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct KnownChannels {
    state: Arc<dyn AdapterState>,
    known: Mutex<ChannelFacts>,
}

#[derive(Debug, Default)]
struct ChannelFacts {
    kinds: HashMap<Snowflake, ChannelKind>,
    /// Threads in which we take part.
    ours: HashSet<Snowflake>,
    /// Channels in which Discord did not let us make threads.
    threadless: HashSet<Snowflake>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    Private,
    /// Of a server; `threads` if a message there can have a thread.
    Server {
        threads: bool,
    },
    Thread {
        parent: Snowflake,
    },
}

/// A channel in which something was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscordChannel {
    pub(crate) id: Snowflake,
    pub(crate) kind: ChannelKind,
    /// A thread in which we take part.
    pub(crate) ours: bool,
    /// Discord did not let us make threads here.
    pub(crate) threadless: bool,
}

impl KnownChannels {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self {
            state,
            known: Mutex::default(),
        }
    }

    /// Threads of an earlier process.
    pub(crate) async fn load(&self) -> Result<(), AdapterStateError> {
        let kept = self.state.load_all(PREFIX).await?;
        let mut known = self.lock();
        for (key, value) in kept {
            let thread = key.strip_prefix(PREFIX).and_then(Snowflake::parse);
            if let (Some(thread), Some(parent)) = (thread, Snowflake::parse(&value)) {
                known.kinds.insert(thread, ChannelKind::Thread { parent });
                known.ours.insert(thread);
            }
        }
        Ok(())
    }

    /// Notes channels as Discord describes them. A thread that `us` made is ours.
    pub(crate) fn note(&self, channels: &[RawChannel], us: Option<Snowflake>) {
        let mut known = self.lock();
        if known.kinds.len() + channels.len() > MOST_KNOWN {
            // Not `ours`, which is no copy of anything that Discord would tell us again.
            known.kinds.clear();
        }
        for raw in channels {
            known.kinds.insert(raw.id, raw.kind());
            if raw.is_thread() && us.is_some() && raw.owner_id == us {
                known.ours.insert(raw.id);
            }
        }
    }

    pub(crate) fn find(&self, id: Snowflake) -> Option<DiscordChannel> {
        let known = self.lock();
        let kind = *known.kinds.get(&id)?;
        Some(DiscordChannel {
            id,
            kind,
            ours: known.ours.contains(&id),
            threadless: known.threadless.contains(&id),
        })
    }

    /// We take part in this thread from now on: what is said there needs no mention.
    pub(crate) async fn join(
        &self,
        thread: Snowflake,
        parent: Snowflake,
    ) -> Result<(), AdapterStateError> {
        let oldest = {
            let mut known = self.lock();
            // In memory before it is written: what is said there meanwhile needs no mention
            // already, and a write that fails costs no more than the mention after a restart.
            known.kinds.insert(thread, ChannelKind::Thread { parent });
            if !known.ours.insert(thread) {
                return Ok(());
            }
            known.forget_oldest()
        };
        let parent = parent.to_string();
        self.state
            .save(&key(thread), &parent, SaveDurability::Soon)
            .await?;
        // After the save: killed between the two, there is a row too many and not one too few.
        match oldest {
            Some(oldest) => self.state.remove(&key(oldest)).await,
            None => Ok(()),
        }
    }

    /// Answers are given in the channel itself until a restart.
    pub(crate) fn note_threadless(&self, channel: Snowflake) {
        self.lock().threadless.insert(channel);
    }

    pub(crate) fn is_threadless(&self, channel: Snowflake) -> bool {
        self.lock().threadless.contains(&channel)
    }

    fn lock(&self) -> MutexGuard<'_, ChannelFacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(thread: Snowflake) -> String {
    format!("{PREFIX}{thread}")
}

impl ChannelFacts {
    /// The oldest thread in which we take part, if there is one too many: in it our name is needed again.
    fn forget_oldest(&mut self) -> Option<Snowflake> {
        // Snowflakes count up with the time, so the smallest is the thread that was begun first.
        let oldest = self.ours.iter().min().copied();
        let oldest = oldest.filter(|_| self.ours.len() > MOST_JOINED)?;
        self.ours.remove(&oldest);
        Some(oldest)
    }
}

impl DiscordChannel {
    pub(crate) fn private(id: Snowflake) -> Self {
        Self {
            id,
            kind: ChannelKind::Private,
            ours: false,
            threadless: false,
        }
    }

    /// The conversation that is had here. A thread is named after its channel and itself, so that it is
    /// the same before and after it exists.
    pub(crate) fn place(&self) -> ChatPlace {
        match self.kind {
            ChannelKind::Private => place(self.id, ChatKind::Dm, None),
            ChannelKind::Server { .. } => place(self.id, ChatKind::Group, None),
            ChannelKind::Thread { parent } => place(parent, ChatKind::Thread, Some(self.id)),
        }
    }

    /// The thread that a message of this channel has, or will have: Discord names it after the message.
    pub(crate) fn thread_of(&self, message: Snowflake) -> ChatPlace {
        place(self.id, ChatKind::Thread, Some(message))
    }

    /// The ids by which lists of channels may name it.
    pub(crate) fn names(&self) -> Vec<ChatId> {
        match self.kind {
            ChannelKind::Thread { parent } => vec![self.id.into(), parent.into()],
            _ => vec![self.id.into()],
        }
    }
}

impl RawChannel {
    /// Discord's numbers: 1 private, 3 a private group, 0 text, 5 announcements, 10 to 12 threads.
    pub(crate) fn kind(&self) -> ChannelKind {
        match (self.kind, self.parent_id) {
            (1 | 3, _) => ChannelKind::Private,
            (10..=12, Some(parent)) => ChannelKind::Thread { parent },
            (kind, _) => ChannelKind::Server {
                threads: matches!(kind, 0 | 5),
            },
        }
    }

    /// Whether messages can be read there: in text channels and threads, and in those of voices, which
    /// have a chat of their own. In a forum there are only threads.
    pub(crate) fn has_history(&self) -> bool {
        matches!(self.kind, 0 | 2 | 5 | 10..=13)
    }

    fn is_thread(&self) -> bool {
        matches!(self.kind(), ChannelKind::Thread { .. })
    }
}

fn place(chat: Snowflake, kind: ChatKind, thread: Option<Snowflake>) -> ChatPlace {
    ChatPlace {
        chat: chat.into(),
        kind,
        thread: thread.map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_chat::InMemoryState;

    #[tokio::test]
    async fn beyond_the_most_the_oldest_thread_is_forgotten() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let channels = KnownChannels::new(Arc::clone(&state));
        let parent = Snowflake::from_position(1);
        for thread in 0..=MOST_JOINED as u64 {
            let thread = Snowflake::from_position(100 + thread);
            channels.join(thread, parent).await.unwrap();
        }
        let again = KnownChannels::new(Arc::clone(&state));
        again.load().await.unwrap();
        let is_ours = |thread| again.find(Snowflake::from_position(thread)).is_some();
        assert_eq!((is_ours(100), is_ours(101)), (false, true));
    }
}
