//! The chat in the browser: there wherever the dashboard is.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_access::Access;
use hermetic_browser::{
    BrowserAdapter, BrowserPress, BrowserWords, MOST_CONVERSATIONS, MOST_FILE_BYTES, MOST_FILES,
    MOST_TEXT_BYTES, PressRefused, SayRefused,
};
use hermetic_chat::Chat as _;
use hermetic_config::Config;
use hermetic_dashboard::{AccessKey, BrowserChat, ChatBounds, ChatPress, ChatRefused, ChatWords};
use hermetic_store::Store;
use hermetic_types::{ConversationKey, SharedClock, UserId};
use tokio::sync::watch;

use crate::access;

/// The account, where there are pages to chat on.
pub(crate) fn browser_account(
    config: &Config,
    store: &Store,
    clock: &SharedClock,
) -> Option<Arc<BrowserAdapter>> {
    let wanted = config.gateway().dashboard.enabled;
    wanted.then(|| Arc::new(BrowserAdapter::new(store.browser_chat(), Arc::clone(clock))))
}

/// The account as the pages hold it.
pub(crate) fn browser_chat(
    config: &Config,
    store: &Store,
    clock: &SharedClock,
    account: Arc<BrowserAdapter>,
) -> Arc<dyn BrowserChat> {
    Arc::new(PageChat {
        access: access::access(config, store),
        state: config.home().state(),
        store: store.clone(),
        clock: Arc::clone(clock),
        account,
    })
}

#[derive(Debug)]
struct PageChat {
    account: Arc<BrowserAdapter>,
    /// Names conversations as the gateway does.
    access: Access,
    /// The folder with the key under which people signed in.
    state: PathBuf,
    store: Store,
    clock: SharedClock,
}

impl PageChat {
    /// By what this person was let in, unless the configuration names them.
    fn pass(&self, person: &UserId) -> Option<String> {
        if person.as_str().starts_with("proxy:") {
            return None;
        }
        let key = AccessKey::load(&self.state).ok().flatten();
        key.map(|key| key.fingerprint())
    }
}

impl BrowserChat for PageChat {
    fn open<'a>(&'a self, person: &'a UserId) -> BoxFuture<'a, Result<i64, ChatRefused>> {
        async move {
            let rows = self.store.browser_chat();
            let opened = rows.open(person.as_str(), MOST_CONVERSATIONS, self.clock.now());
            let opened = opened.await.map_err(|error| passing(&error))?;
            opened.ok_or_else(|| ChatRefused {
                why: format!("You have {MOST_CONVERSATIONS} conversations: delete one first."),
                is_passing: false,
                is_other: false,
            })
        }
        .boxed()
    }

    fn say(&self, words: ChatWords) -> BoxFuture<'_, Result<(), ChatRefused>> {
        let words = BrowserWords {
            pass: self.pass(&words.person),
            person: words.person,
            conversation: words.conversation,
            text: words.text,
            once: words.once,
            files: words.files,
        };
        async move {
            let said = self.account.say(words).await;
            said.map_err(|error| match error {
                SayRefused::Store(_) => passing(&error),
                SayRefused::Another => ChatRefused {
                    is_other: true,
                    ..refused(&error)
                },
                _ => refused(&error),
            })
        }
        .boxed()
    }

    fn press(&self, press: ChatPress) -> BoxFuture<'_, Result<(), ChatRefused>> {
        let press = BrowserPress {
            pass: self.pass(&press.person),
            person: press.person,
            conversation: press.conversation,
            message: press.message,
            data: press.data,
        };
        async move {
            let pressed = self.account.press(press).await;
            pressed.map_err(|error| match error {
                PressRefused::Store(_) | PressRefused::NotTaken | PressRefused::MayBeTaken => {
                    passing(&error)
                }
                PressRefused::NoButton | PressRefused::TurnedAway => refused(&error),
            })
        }
        .boxed()
    }

    fn is_writing(&self, conversation: i64) -> bool {
        self.account.is_writing(conversation)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.account.changes()
    }

    fn key(&self, person: &UserId, conversation: i64) -> Option<ConversationKey> {
        let place = BrowserAdapter::place(person, conversation).ok()?;
        let account = self.account.account();
        Some(self.access.conversation(account, &place, person))
    }

    fn bounds(&self) -> ChatBounds {
        ChatBounds {
            text_bytes: MOST_TEXT_BYTES,
            files: MOST_FILES,
            file_bytes: MOST_FILE_BYTES,
        }
    }
}

fn refused(error: &impl std::error::Error) -> ChatRefused {
    ChatRefused {
        why: sentence(&error.to_string()),
        is_passing: false,
        is_other: false,
    }
}

fn passing(error: &impl std::error::Error) -> ChatRefused {
    ChatRefused {
        is_passing: true,
        ..refused(error)
    }
}

/// As a page says it.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
