//! One door, a clock that stands still until told, and people.

use std::sync::Arc;

use hermetic_access::{Access, Admitted, MemoryPairings, Pairing, PairingCode, Refused, Settings};
use hermetic_types::{
    ChatId, ChatKind, Incoming, MessageId, Place, Platform, Sender, UpdateId, UserId,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) struct Lab {
    pub(crate) access: Access,
    pub(crate) now: Timestamp,
}

impl Lab {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            access: Access::new(settings, Pairing::new(Arc::new(MemoryPairings::default()))),
            now: Timestamp::from_second(1_700_000_000).unwrap(),
        }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) async fn says(&self, incoming: Incoming) -> Result<Admitted, Refused> {
        self.access.admit(incoming, self.now).await
    }

    pub(crate) async fn asks_for_code(&self, who: &str) -> PairingCode {
        match self.says(dm(who)).await {
            Err(Refused::OfferPairing(code)) => code,
            other => panic!("{who} was not offered a code: {other:?}"),
        }
    }

    pub(crate) fn pairing(&self) -> &Pairing {
        self.access.pairing()
    }
}

pub(crate) fn user(id: &str) -> UserId {
    UserId::new(id).unwrap()
}

pub(crate) fn dm(who: &str) -> Incoming {
    said(who, ChatKind::Dm, who)
}

pub(crate) fn group(who: &str, chat: &str) -> Incoming {
    said(who, ChatKind::Group, chat)
}

fn said(who: &str, kind: ChatKind, chat: &str) -> Incoming {
    Incoming {
        account: Platform::Telegram.into(),
        update: UpdateId::from(1),
        message: MessageId::from(1),
        place: Place {
            chat: ChatId::new(chat).unwrap(),
            kind,
            thread: None,
        },
        sender: Sender {
            id: user(who),
            display: format!("{who}\u{1b}[2J\u{202e}"),
            is_bot: false,
        },
        text: "hello".to_owned(),
        reply_to: None,
        mentions_us: false,
        attachments: Vec::new(),
        received_at: Timestamp::UNIX_EPOCH,
    }
}
