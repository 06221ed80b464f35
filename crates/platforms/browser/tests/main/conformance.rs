//! The browser against the contract of every chat.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use hermetic_browser::{BrowserAdapter, BrowserPress, BrowserWords, ReplyKeeper};
use hermetic_chat::Chat;
use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_store::{BrowserChatRows, BrowserMessageState, NewBrowserMessage, Store};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, SystemClock, Timestamp, UserId};
use tempfile::TempDir;
use tokio::task::JoinHandle;

hermetic_chat::conformance!(candidate);

const ADA: &str = "dashboard:ada";

async fn candidate(name: &str) -> ChatCandidate {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = Store::open(&path, SystemClock::shared()).await.unwrap();
    let rows = store.browser_chat();
    let opened = rows.open(ADA, 9, Timestamp::from_millis(1)).await;
    let conversation = opened.unwrap().unwrap();
    let keeper = Arc::new(FatefulKeeper {
        rows: rows.clone(),
        fates: Mutex::default(),
    });
    let replies = Arc::clone(&keeper) as Arc<dyn ReplyKeeper>;
    let clock = SystemClock::shared();
    let chat = BrowserAdapter::keeping_replies_in(replies, rows.clone(), clock);
    let account = AccountId::new(Platform::Browser, name.parse().unwrap());
    let chat = Arc::new(chat.named(account));
    let page = BrowserPage {
        chat: Arc::clone(&chat),
        rows,
        keeper,
        conversation,
        forms: AtomicU64::new(0),
        saying: Mutex::default(),
        last: Mutex::default(),
        _folder: folder,
    };
    ChatCandidate {
        chat: chat as Arc<dyn Chat>,
        stand_in: Box::new(page),
    }
}

/// Keeps replies, or does not, or keeps them and does not say so.
#[derive(Debug)]
struct FatefulKeeper {
    rows: BrowserChatRows,
    fates: Mutex<VecDeque<SendFate>>,
}

impl ReplyKeeper for FatefulKeeper {
    fn keep<'a>(
        &'a self,
        person: &'a str,
        message: &'a NewBrowserMessage,
        buttons: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<i64>, Box<dyn Error + Send + Sync>>> {
        async move {
            let fate = self.fates.lock().unwrap().pop_front();
            if fate == Some(SendFate::Refused) {
                return Ok(None);
            }
            let kept = self.rows.keep(person, message, buttons, now).await;
            match fate {
                Some(SendFate::ArrivesUnconfirmed) => Err("the store does not answer".into()),
                _ => kept,
            }
        }
        .boxed()
    }
}

/// The page, and the person before it.
#[derive(Debug)]
struct BrowserPage {
    chat: Arc<BrowserAdapter>,
    rows: BrowserChatRows,
    keeper: Arc<FatefulKeeper>,
    conversation: i64,
    forms: AtomicU64,
    saying: Mutex<Vec<JoinHandle<()>>>,
    last: Mutex<Option<BrowserWords>>,
    _folder: TempDir,
}

impl BrowserPage {
    fn send(&self, words: BrowserWords) {
        *self.last.lock().unwrap() = Some(words.clone());
        let chat = Arc::clone(&self.chat);
        let saying = tokio::spawn(async move {
            // What is refused is said to nobody here.
            let _ = chat.say(words).await;
        });
        self.saying.lock().unwrap().push(saying);
    }

    fn words(&self, text: &str, conversation: i64) -> BrowserWords {
        let form = self.forms.fetch_add(1, Ordering::Relaxed);
        BrowserWords {
            person: self.person(),
            conversation,
            text: text.to_owned(),
            once: format!("form-{form}"),
            pass: None,
            files: Vec::new(),
        }
    }
}

impl StandIn for BrowserPage {
    fn person(&self) -> UserId {
        UserId::new(ADA).unwrap()
    }

    fn place(&self) -> ChatPlace {
        BrowserAdapter::place(&self.person(), self.conversation).unwrap()
    }

    fn says(&self, text: &str) {
        self.send(self.words(text, self.conversation));
    }

    fn presses(&self, message: &MessageId, data: &str) {
        let press = BrowserPress {
            person: self.person(),
            conversation: self.conversation,
            message: message.as_str().parse().unwrap(),
            data: data.to_owned(),
            pass: None,
        };
        let chat = Arc::clone(&self.chat);
        let pressing = tokio::spawn(async move {
            let _ = chat.press(press).await;
        });
        self.saying.lock().unwrap().push(pressing);
    }

    fn repeats(&self) {
        let last = self.last.lock().unwrap().clone();
        self.send(last.expect("something was said"));
    }

    fn sends_garbage(&self) {
        self.send(self.words("", self.conversation));
        self.send(self.words("to nobody", 4711));
    }

    fn decide_next_send(&self, fate: SendFate) {
        self.keeper.fates.lock().unwrap().push_back(fate);
    }

    fn shown(&self) -> Vec<String> {
        let rows = self.rows.clone();
        let conversation = self.conversation;
        let read = async move { rows.messages(ADA, conversation, None, 100).await };
        // The trait waits for nothing, and the store answers from threads of its own.
        let messages = std::thread::scope(|scope| {
            let runtime = tokio::runtime::Handle::current();
            let reading = scope.spawn(move || runtime.block_on(read));
            reading.join().unwrap()
        });
        let messages = messages.unwrap().into_iter();
        let ours = messages.filter(|one| one.state == BrowserMessageState::Shown);
        ours.map(|one| one.text).collect()
    }
}

impl Drop for BrowserPage {
    fn drop(&mut self) {
        for saying in self.saying.lock().unwrap().drain(..) {
            saying.abort();
        }
    }
}
