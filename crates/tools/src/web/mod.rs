//! `web_search` and `web_extract`, as models trained on Hermes know them.
//!
//! A search is the gateway's own request, to the provider that the operator chose. A page is fetched on the
//! conversation's behalf, through its egress: what its sandbox may not reach, this may not reach. Every byte of
//! either is somebody else's, bounded before it is kept.

mod answer;
mod arguments;
mod charset;
mod compression;
mod extract;
mod fetch;
mod html;
mod markup;
pub(crate) mod pdf;
mod search;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hermetic_services::SearchService;
use hermetic_types::ConversationKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::ToolDescription;

pub(crate) use extract::EXTRACT;
pub(crate) use search::SEARCH;

/// The web tools of an installation.
#[derive(Clone, Debug)]
pub struct WebTools {
    search: Option<SearchService>,
    settings: WebSettings,
    slots: Arc<FetchSlots>,
}

#[derive(Clone, Copy, Debug)]
pub struct WebSettings {
    /// Characters of one page that a model is shown.
    pub page_chars: usize,
    /// How long a server may take for one answer, and again for its body.
    pub patience: Duration,
}

/// Who may fetch how many pages at once: a page is held in memory while it is read.
#[derive(Debug)]
struct FetchSlots {
    all: Arc<Semaphore>,
    conversations: Mutex<HashMap<ConversationKey, Weak<Semaphore>>>,
}

/// The right to hold one page in memory.
#[derive(Debug)]
struct FetchSlot(#[expect(dead_code, reason = "held")] [OwnedSemaphorePermit; 2]);

const FETCHES_AT_ONCE: usize = 32;
/// So that one conversation's slow pages leave most of the room to others.
const FETCHES_OF_ONE: usize = 4;
/// How long a page waits for the pages of others.
const SLOT_WAIT: Duration = Duration::from_secs(60);

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            page_chars: 15_000,
            patience: Duration::from_secs(30),
        }
    }
}

impl WebTools {
    /// Without a provider there is no `web_search`.
    pub fn new(search: Option<SearchService>, settings: WebSettings) -> Self {
        Self {
            search,
            settings,
            slots: Arc::new(FetchSlots {
                all: Arc::new(Semaphore::new(FETCHES_AT_ONCE)),
                conversations: Mutex::default(),
            }),
        }
    }

    pub(crate) fn described(&self) -> Vec<ToolDescription> {
        let search = self.search.as_ref().map(|_| search::description());
        let extract = extract::description(self.settings.page_chars);
        search.into_iter().chain([extract]).collect()
    }
}

impl FetchSlots {
    /// Nothing where too many are at it for too long.
    async fn take(&self, conversation: &ConversationKey) -> Option<FetchSlot> {
        let own = self.own(conversation);
        let taking = async {
            // One's own first: whoever waits for the rest holds none of it.
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(FetchSlot([own, all]))
        };
        timeout(SLOT_WAIT, taking).await.ok()?
    }

    fn own(&self, conversation: &ConversationKey) -> Arc<Semaphore> {
        let conversations = self.conversations.lock();
        let mut conversations = conversations.unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = conversations.get(conversation).and_then(Weak::upgrade) {
            return own;
        }
        conversations.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(FETCHES_OF_ONE));
        conversations.insert(conversation.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_conversation_does_not_take_all_slots() {
        let tools = WebTools::new(None, WebSettings::default());
        let (greedy, other) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let mut held = Vec::new();
        for _ in 0..FETCHES_OF_ONE {
            held.push(tools.slots.take(&greedy).await.unwrap());
        }
        assert!(tools.slots.take(&greedy).await.is_none());
        assert!(tools.slots.take(&other).await.is_some());
        drop(held);
        assert!(tools.slots.take(&greedy).await.is_some());
        assert_eq!(tools.slots.conversations.lock().unwrap().len(), 1);
    }
}
