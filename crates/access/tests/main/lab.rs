//! One door, a clock that stands still until told, and people.

use std::sync::Arc;
use std::time::Duration;

use hermetic_access::{
    Access, AccessSettings, AdmissionRefusal, Admitted, MemoryPairings, PairingCode, PairingService,
};
use hermetic_types::{
    ChatId, ChatKind, ChatPlace, IncomingMessage, MessageId, Platform, Sender, Timestamp, UpdateId,
    UserId,
};

pub(crate) struct Lab {
    pub(crate) access: Access,
    pub(crate) now: Timestamp,
}

impl Lab {
    pub(crate) fn new(settings: AccessSettings) -> Self {
        Self {
            access: Access::new(
                settings,
                PairingService::new(Arc::new(MemoryPairings::default())),
            ),
            now: Timestamp::from_seconds(1_700_000_000),
        }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    /// Somebody sets the clock back.
    pub(crate) fn set_back(&mut self, seconds: u64) {
        self.now = self.now.minus(Duration::from_secs(seconds));
    }

    pub(crate) async fn says(
        &self,
        incoming: IncomingMessage,
    ) -> Result<Admitted, AdmissionRefusal> {
        self.access.admit(incoming, self.now).await
    }

    pub(crate) async fn asks_for_code(&self, who: &str) -> PairingCode {
        match self.says(dm(who)).await {
            Err(AdmissionRefusal::OfferPairing(code)) => code,
            other => panic!("{who} was not offered a code: {other:?}"),
        }
    }

    pub(crate) fn pairing(&self) -> &PairingService {
        self.access.pairing()
    }
}

pub(crate) fn user(id: &str) -> UserId {
    UserId::new(id).unwrap()
}

pub(crate) fn dm(who: &str) -> IncomingMessage {
    said(who, ChatKind::Dm, who)
}

pub(crate) fn group(who: &str, chat: &str) -> IncomingMessage {
    said(who, ChatKind::Group, chat)
}

fn said(who: &str, kind: ChatKind, chat: &str) -> IncomingMessage {
    IncomingMessage {
        account: Platform::Telegram.into(),
        update: UpdateId::from(1),
        message: MessageId::from(1),
        place: ChatPlace {
            chat: ChatId::new(chat).unwrap(),
            kind,
            thread: None,
        },
        sender: Sender {
            id: user(who),
            display: format!("{who}\u{1b}[2J\u{202e}"),
            is_bot: false,
            roles: Vec::new(),
        },
        text: "hello".to_owned(),
        reply_to: None,
        mentions_us: false,
        attachments: Vec::new(),
        received_at: Timestamp::UNIX_EPOCH,
    }
}
