//! The delivery ledger: a reply is written before it is sent.
//!
//! A row found after a crash is sent again. If sending had begun, nobody knows whether it arrived, and
//! it is marked as a possible duplicate. Pairing codes are the exception: they are kept nowhere, so a
//! crash in that moment costs the stranger ten minutes and us nothing.

mod attempt;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_access::PairingCode;
use hermetic_chat::{Chat, Reply};
use hermetic_redact::{Redacted, Redactor};
use hermetic_store::{Deliveries, DeliveryRow, End, Inbox, Store, StoreError};
use hermetic_types::{MessageId, Place, Platform};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::attempt::Letter;
use crate::kept::Kept;
use crate::wording::now;

/// With nothing to do.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

const LAST_MOMENT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Post {
    chats: HashMap<Platform, Arc<dyn Chat>>,
    deliveries: Deliveries,
    inbox: Inbox,
    redactor: Redactor,
    /// Letters that have to be sent again, with the time for it.
    again: Mutex<BTreeMap<DeliveryRow, (Instant, Letter)>>,
    wake: Notify,
    tasks: TaskTracker,
    /// After it, what is being sent has a moment left.
    cut: CancellationToken,
}

/// A reply that is written down, and sent or on its way.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Delivered(#[expect(dead_code, reason = "a receipt")] DeliveryRow);

/// Where a reply goes, as the ledger keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Address {
    place: Place,
    reply_to: Option<MessageId>,
}

impl Post {
    pub(crate) fn new(
        chats: impl IntoIterator<Item = Arc<dyn Chat>>,
        store: &Store,
        redactor: Redactor,
        tasks: TaskTracker,
        cut: CancellationToken,
    ) -> Self {
        Self {
            chats: chats
                .into_iter()
                .map(|chat| (chat.platform(), chat))
                .collect(),
            deliveries: store.deliveries(),
            inbox: store.inbox(),
            redactor,
            again: Mutex::default(),
            wake: Notify::new(),
            tasks,
            cut,
        }
    }

    pub(crate) fn chat(&self, platform: Platform) -> Option<&Arc<dyn Chat>> {
        self.chats.get(&platform)
    }

    /// Writes the reply down, closes the message, and sends.
    pub(crate) async fn deliver(
        &self,
        message: &Kept,
        reply: &Redacted<String>,
        end: End,
    ) -> Result<Delivered, StoreError> {
        let said = message.said();
        let in_private = said.place.kind == hermetic_types::ChatKind::Dm;
        let address = Address {
            place: said.place.clone(),
            reply_to: (!in_private).then(|| said.message.clone()),
        };
        let text = serde_json::to_string(&address).unwrap_or_default();
        let row = self
            .deliveries
            .queue(
                Some(message.row()),
                said.platform.name(),
                &text,
                reply.as_str(),
                now(),
            )
            .await?;
        self.inbox.end(message.row(), end, None, now()).await?;
        self.send(Letter::new(row, said.platform, address, reply.clone()))
            .await;
        Ok(Delivered(row))
    }

    pub(crate) async fn has_reply(&self, message: &Kept) -> Result<bool, StoreError> {
        self.deliveries.any_for(message.row()).await
    }

    pub(crate) fn offer_pairing(&self, platform: Platform, place: Place, code: &PairingCode) {
        let Some(chat) = self.chats.get(&platform).cloned() else {
            return;
        };
        let text = self.redactor.redact(format!(
            "I do not know you yet. Give the operator of this bot these characters, which are good for an \
             hour: {}\n\nThe operator lets you in with: hermetic pairing approve {platform} {}",
            code.as_str(),
            code.as_str()
        ));
        let cut = self.cut.clone();
        self.tasks.spawn(async move {
            let reply = Reply::text(text.into());
            let sent = tokio::select! {
                sent = chat.send(&place, &reply) => sent,
                () = a_moment_after(&cut) => return,
            };
            if let Err(error) = sent {
                tracing::warn!(%platform, %error, "a pairing code could not be sent");
            }
        });
    }

    /// Takes over what an earlier process did not see arrive. Called once, before anything new is sent.
    pub(crate) async fn take_over(&self) -> Result<usize, StoreError> {
        let due = self.deliveries.due().await?;
        let count = due.len();
        for due in due {
            let platform = due.platform.parse::<Platform>();
            let address = serde_json::from_str::<Address>(&due.address);
            let (Ok(platform), Ok(address)) = (platform, address) else {
                self.deliveries
                    .failed(due.row, "the address cannot be read")
                    .await?;
                continue;
            };
            let mut letter =
                Letter::new(due.row, platform, address, self.redactor.redact(&due.text));
            letter.maybe_sent = due.maybe_sent;
            self.again().insert(due.row, (Instant::now(), letter));
        }
        self.wake.notify_one();
        Ok(count)
    }

    /// Sends what has to be sent again, until `stop`. What is left then is in the ledger.
    pub(crate) async fn courier(&self, stop: CancellationToken) {
        loop {
            while let Some(letter) = self.ripe() {
                // What is being sent is given a moment, or it would be marked next time for nothing.
                tokio::select! {
                    () = self.send(letter) => {}
                    () = a_moment_after(&stop) => return,
                }
            }
            let next = self.again().values().map(|(at, _)| *at).min();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = sleep_until(next.unwrap_or_else(|| Instant::now() + LOOK_AGAIN)) => {}
            }
        }
    }

    fn ripe(&self) -> Option<Letter> {
        let mut again = self.again();
        let now = Instant::now();
        let row = again
            .iter()
            .find(|(_, (at, _))| *at <= now)
            .map(|(row, _)| *row)?;
        again.remove(&row).map(|(_, letter)| letter)
    }

    fn again(&self) -> MutexGuard<'_, BTreeMap<DeliveryRow, (Instant, Letter)>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So that an end does not wait for a platform that does not answer.
async fn a_moment_after(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(LAST_MOMENT).await;
}
