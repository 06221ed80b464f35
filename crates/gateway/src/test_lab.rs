//! Messages that were let in, for unit tests of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hermetic_access::{Access, AccessSettings, PairingService, PlatformSettings};
use hermetic_store::Store;
use hermetic_types::{
    ChatId, ChatKind, ChatPlace, Clock as _, IncomingMessage, MessageId, Platform, Sender,
    SystemClock, UpdateId, UserId,
};

use crate::StoredPairings;
use crate::message::AcceptedMessage;

/// A store of its own and everybody let in.
pub(crate) struct TestLab {
    pub(crate) store: Store,
    access: Access,
    next: AtomicU64,
    folder: tempfile::TempDir,
}

impl TestLab {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db"), SystemClock::shared())
            .await
            .unwrap();
        let everybody = PlatformSettings {
            allow_all: true,
            ..PlatformSettings::default()
        };
        let settings = AccessSettings {
            platforms: [(Platform::Telegram, everybody)].into(),
            ..AccessSettings::default()
        };
        let pairing = PairingService::new(Arc::new(StoredPairings::new(store.documents())));
        Self {
            access: Access::new(settings, pairing),
            store,
            next: AtomicU64::new(1),
            folder,
        }
    }

    /// Changes the database behind the store's back, as a broken disk would.
    pub(crate) fn spoil(&self, sql: &str) {
        let script = "import sqlite3, sys\n\
                      with sqlite3.connect(sys.argv[1], timeout=20) as database:\n    \
                          database.executescript(sys.argv[2])";
        let done = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(self.folder.path().join("s.db"))
            .arg(sql)
            .status();
        assert!(done.unwrap().success(), "{sql}");
    }

    pub(crate) fn place(chat: i64) -> ChatPlace {
        ChatPlace {
            chat: ChatId::from(chat),
            kind: ChatKind::Dm,
            thread: None,
        }
    }

    /// A private message.
    pub(crate) async fn says(&self, user: i64, text: &str) -> AcceptedMessage {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        self.said(user, &number, &number, text).await
    }

    /// What a process has to tell that this message had started.
    pub(crate) async fn notice(&self, of: &AcceptedMessage, user: i64) -> AcceptedMessage {
        let message = of.said().message.as_str();
        self.said(user, "proc_7:end", message, "has ended").await
    }

    async fn said(&self, user: i64, update: &str, message: &str, text: &str) -> AcceptedMessage {
        let incoming = IncomingMessage {
            account: Platform::Telegram.into(),
            update: UpdateId::new(update).unwrap(),
            message: MessageId::new(message).unwrap(),
            place: Self::place(user),
            sender: Sender {
                id: UserId::new(user.to_string()).unwrap(),
                display: String::new(),
                is_bot: false,
                roles: Vec::new(),
            },
            text: text.to_owned(),
            reply_to: None,
            mentions_us: true,
            attachments: Vec::new(),
            received_at: SystemClock.now(),
        };
        let admitted = self.access.admit(incoming, SystemClock.now()).await;
        let kept =
            AcceptedMessage::write(&self.store.inbox(), admitted.unwrap(), SystemClock.now()).await;
        kept.unwrap().unwrap()
    }
}
