//! What all conversations of one person hold of the proxy together.
//!
//! A person may have many conversations, each with a sandbox of its own. Bounded one by one they could hold every
//! connection and every look-up that there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermetic_types::ConversationKey;
use tokio::sync::Semaphore;

use crate::limits::EgressLimits;

/// Whose conversations are bounded together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EgressOwner(String);

impl EgressOwner {
    /// By any name that is one person's and nobody else's.
    pub fn named(name: &str) -> Self {
        Self(format!("person {name}"))
    }

    /// Where nobody said whose it is: the chat, with all its threads.
    pub(crate) fn of_chat(conversation: &ConversationKey) -> Self {
        // `agent`, the profile, the account, the kind of chat, its id. What follows names a thread.
        const PARTS_OF_A_CHAT: usize = 5;
        let parts: Vec<_> = conversation
            .as_str()
            .split(':')
            .take(PARTS_OF_A_CHAT)
            .collect();
        Self(format!("chat {}", parts.join(":")))
    }
}

/// The connections and look-ups of one owner.
#[derive(Debug)]
pub(crate) struct OwnerShare {
    connections: AtomicUsize,
    pub(crate) lookups: Arc<Semaphore>,
}

/// One connection of an owner; dropping it gives the slot back.
#[derive(Debug)]
pub(crate) struct OwnerSlot(Arc<OwnerShare>);

impl OwnerShare {
    pub(crate) fn new(limits: &EgressLimits) -> Arc<Self> {
        Arc::new(Self {
            connections: AtomicUsize::new(0),
            lookups: Arc::new(Semaphore::new(limits.lookups_of_owner)),
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn open(self: &Arc<Self>) -> OwnerSlot {
        self.connections.fetch_add(1, Ordering::AcqRel);
        OwnerSlot(Arc::clone(self))
    }
}

impl Drop for OwnerSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_chat_are_one_owners() {
        let owner = |key: &str| EgressOwner::of_chat(&ConversationKey::new(key));
        let chat = owner("agent:main:telegram:dm:42");
        assert_eq!(chat, owner("agent:main:telegram:dm:42:7"));
        assert_ne!(chat, owner("agent:main:telegram:dm:4"));
        assert_ne!(chat, owner("agent:main:telegram/work:dm:42"));
        assert_ne!(owner("cli:work"), owner("cli:play"));
        assert_ne!(owner("mcp:7:1"), owner("mcp:7:2"));
        let (chat, person) = (owner("telegram:42"), EgressOwner::named("telegram:42"));
        assert_ne!(
            chat, person,
            "a chat is not taken for the person of the same name"
        );
    }
}
