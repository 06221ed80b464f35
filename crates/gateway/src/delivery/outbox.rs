//! The delivery ledger: a reply is written before it is sent.
//!
//! A row found after a crash is sent again. If sending had begun, nobody knows whether it arrived, and
//! it is marked as a possible duplicate. Pairing codes are the exception: they are kept nowhere, so a
//! crash in that moment costs the stranger ten minutes and us nothing.
//!
//! A text is tried for about a day. A file that does not arrive at the first attempt leaves its line: what
//! was written after it goes on, and the file is tried for some minutes more; then it is said that it was
//! not delivered and where it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_access::PairingCode;
use hermetic_chat::{Chat, ChatReply, ReplyRule, UndeliveredReply};
use hermetic_redact::{Redacted, Redactor};
use hermetic_store::{
    DeliveryRow, DeliveryRows, DueDelivery, MessageEnd, RowOwner, Store, StoreError,
};
use hermetic_types::{AccountId, ChatPlace, ConversationKey, MessageId, SharedClock, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::FileSource;
use super::attempt::Delivery;
use super::destinations::{Destination, DestinationQueues};
use super::late_files::FilePace;
use super::working_off::LEDGER_PAUSE;
use crate::message::AcceptedMessage;
use crate::{GatewayMetrics, MessageTraces};

/// With nothing to do.
const IDLE_OUTBOX_WAIT: Duration = Duration::from_secs(3600);

const LAST_MOMENT: Duration = Duration::from_secs(5);

/// What an outbox is made of.
#[derive(Debug)]
pub(crate) struct OutboxParts<'a> {
    pub(crate) chats: &'a [Arc<dyn Chat>],
    pub(crate) store: &'a Store,
    pub(crate) files: Arc<dyn FileSource>,
    pub(crate) redactor: Redactor,
    pub(crate) clock: SharedClock,
    pub(crate) tasks: TaskTracker,
    /// After it, what is being sent has a moment left.
    pub(crate) cut: CancellationToken,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) traces: MessageTraces,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    pub(super) chats: HashMap<AccountId, Arc<dyn Chat>>,
    pub(super) deliveries: DeliveryRows,
    pub(super) files: Arc<dyn FileSource>,
    pub(super) redactor: Redactor,
    pub(super) clock: SharedClock,
    pub(super) pace: FilePace,
    pub(super) ledger_pause: Duration,
    pub(super) destinations: DestinationQueues,
    pub(super) wake: Notify,
    pub(super) tasks: TaskTracker,
    /// After it, what is being sent has a moment left.
    pub(super) cut: CancellationToken,
    pub(super) metrics: GatewayMetrics,
    pub(super) traces: MessageTraces,
}

/// A reply that is written down, and sent or on its way.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct DeliveredReply(#[expect(dead_code, reason = "a receipt")] DeliveryRow);

/// Where a reply goes, as the ledger keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeliveryAddress {
    pub(super) place: ChatPlace,
    pub(super) reply_to: Option<MessageId>,
    /// The message in which it was shown while it grew.
    #[serde(default)]
    pub(super) draft: Option<MessageId>,
    /// Files that follow the text, below the conversation's workspace. They are read when they are
    /// sent.
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) conversation: Option<ConversationKey>,
    /// A file that did not arrive with its text. Nothing waits for it.
    #[serde(default)]
    pub(super) late: bool,
}

impl Outbox {
    pub(crate) fn new(parts: OutboxParts<'_>) -> Self {
        let chats = parts.chats.iter();
        Self {
            chats: chats
                .map(|chat| (chat.account().clone(), Arc::clone(chat)))
                .collect(),
            deliveries: parts.store.deliveries(),
            files: parts.files,
            redactor: parts.redactor,
            clock: parts.clock,
            pace: FilePace::default(),
            ledger_pause: LEDGER_PAUSE,
            destinations: DestinationQueues::default(),
            wake: Notify::new(),
            tasks: parts.tasks,
            cut: parts.cut,
            metrics: parts.metrics,
            traces: parts.traces,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn chat(&self, account: &AccountId) -> Option<&Arc<dyn Chat>> {
        self.chats.get(account)
    }

    /// What may be said in return there.
    pub(crate) fn replies(&self, account: &AccountId) -> ReplyRule {
        let chat = self.chats.get(account);
        chat.map_or(ReplyRule::Free, |chat| chat.capabilities().replies)
    }

    /// Writes the reply down, closes the message, and sends.
    pub(crate) async fn deliver(
        &self,
        message: &AcceptedMessage,
        reply: &Redacted<String>,
        end: MessageEnd,
    ) -> Result<DeliveredReply, StoreError> {
        self.deliver_with(message, reply, Vec::new(), end).await
    }

    /// The same, with files that follow.
    pub(crate) async fn deliver_with(
        &self,
        message: &AcceptedMessage,
        reply: &Redacted<String>,
        files: Vec<String>,
        end: MessageEnd,
    ) -> Result<DeliveredReply, StoreError> {
        let said = message.said();
        let there = (&said.account, said.place.clone());
        self.deliver_elsewhere(message, there, reply, (files, end))
            .await
    }

    /// The same, into another chat than the message came from. Whether it may go there is the caller's to
    /// know.
    pub(crate) async fn deliver_elsewhere(
        &self,
        message: &AcceptedMessage,
        (account, place): (&AccountId, ChatPlace),
        reply: &Redacted<String>,
        (files, end): (Vec<String>, MessageEnd),
    ) -> Result<DeliveredReply, StoreError> {
        let to_quote = message.to_quote(self.replies(account));
        let address = DeliveryAddress {
            place,
            reply_to: to_quote.cloned(),
            draft: message.draft().cloned(),
            files,
            conversation: Some(message.conversation().clone()),
            late: false,
        };
        let text = serde_json::to_string(&address).unwrap_or_default();
        let name = account.to_string();
        let written = (name.as_str(), text.as_str(), reply.as_str());
        let now = self.now();
        let row = self
            .deliveries
            // One transaction for the reply and the end of its message: between two, a crash would
            // answer twice or never.
            .queue_and_end(message.row(), end, written, now)
            .await?;
        let mut delivery = Delivery::new(row, account.clone(), address, reply.clone(), now);
        delivery.message = Some(message.row());
        let destination = delivery.destination();
        // Into its line also when that is free: whoever works the line off takes what is first in
        // it, which may be an older one whose pause has just ended.
        self.destinations.push(delivery);
        self.work_off(&destination).await;
        Ok(DeliveredReply(row))
    }

    // Into the line first, also when it is free: who sends it takes the first of the line, which
    // may be another that waits for its time.
    /// Writes a notice down that answers no message, and sends it.
    pub(crate) async fn notify(
        &self,
        account: &AccountId,
        place: ChatPlace,
        notice: &Redacted<String>,
    ) -> Result<DeliveredReply, StoreError> {
        let address = DeliveryAddress {
            place,
            reply_to: None,
            draft: None,
            files: Vec::new(),
            conversation: None,
            late: false,
        };
        let text = serde_json::to_string(&address).unwrap_or_default();
        let name = account.to_string();
        let now = self.now();
        let written = (name.as_str(), text.as_str(), notice.as_str());
        let row = self.deliveries.queue(written, now).await?;
        let delivery = Delivery::new(row, account.clone(), address, notice.clone(), now);
        let destination = delivery.destination();
        self.destinations.push(delivery);
        self.work_off(&destination).await;
        Ok(DeliveredReply(row))
    }

    /// A reply that was sent did not arrive after all.
    pub(crate) async fn note_undelivered(
        &self,
        reply: &UndeliveredReply,
    ) -> Result<(), StoreError> {
        let Some(row) = reply.key.delivery().map(DeliveryRow) else {
            return Ok(());
        };
        let account = reply.account.to_string();
        let noted = self.deliveries.lost(row, &account, &reply.why).await?;
        if noted {
            tracing::warn!(
                delivery = row.0,
                account,
                why = reply.why,
                "a reply did not arrive"
            );
        }
        Ok(())
    }

    /// Whether a reply to this place waits to be sent.
    pub(crate) fn is_held_up(&self, account: &AccountId, place: &ChatPlace) -> bool {
        self.destinations.is_busy(&Destination {
            account: account.clone(),
            place: place.clone(),
            late_file: None,
        })
    }

    pub(crate) async fn has_reply(&self, message: &AcceptedMessage) -> Result<bool, StoreError> {
        self.deliveries.any_for(message.row()).await
    }

    pub(crate) fn offer_pairing(&self, account: &AccountId, place: ChatPlace, code: &PairingCode) {
        let Some(chat) = self.chats.get(account).cloned() else {
            return;
        };
        let platform = account.platform();
        let text = self.redactor.redact(format!(
            "I do not know you yet. Give the operator of this bot these characters, which are good for an \
             hour: {}\n\nThe operator lets you in with: hermetic pairing approve {platform} {}",
            code.as_str(),
            code.as_str()
        ));
        let cut = self.cut.clone();
        self.tasks.spawn(async move {
            let reply = ChatReply::text(text.into());
            let sent = tokio::select! {
                sent = chat.send(&place, &reply) => sent,
                () = a_moment_after(&cut) => return,
            };
            if let Err(error) = sent {
                tracing::warn!(%platform, %error, "a pairing code could not be sent");
            }
        });
    }

    /// Whose answer it is, where it is one.
    pub(crate) fn conversation_of(due: &DueDelivery) -> Option<ConversationKey> {
        let address = serde_json::from_str::<DeliveryAddress>(&due.address).ok()?;
        address.conversation
    }

    /// Takes over what an earlier process did not see arrive. Called once, before anything new is sent.
    pub(crate) async fn take_over(&self) -> Result<usize, StoreError> {
        let due = self.deliveries.due(RowOwner::ThisGateway).await?;
        self.take_over_due(due).await
    }

    /// The same for these, which are of another gateway that is gone.
    pub(crate) async fn take_over_due(&self, due: Vec<DueDelivery>) -> Result<usize, StoreError> {
        let count = due.len();
        let mut left = Vec::new();
        for due in due {
            let account = due.account.parse::<AccountId>();
            let address = serde_json::from_str::<DeliveryAddress>(&due.address);
            let (Ok(account), Ok(address)) = (account, address) else {
                self.deliveries
                    .failed(due.row, "the address cannot be read")
                    .await?;
                continue;
            };
            // Redacted when it was written, and by the secrets of today once more: some may have
            // become known since.
            let text = self.redactor.redact(&due.text);
            let mut delivery = Delivery::new(due.row, account, address, text, due.queued_at);
            delivery.message = due.message;
            delivery.found = due.maybe_sent;
            delivery.go_on_after(due.attempts);
            left.push(delivery);
        }
        // Only when all are read: on a ledger error this is called again as a whole, and what was in its line
        // already would be sent twice.
        for delivery in left {
            self.destinations.push(delivery);
        }
        self.wake.notify_one();
        Ok(count)
    }

    /// Sends what has to be sent again, until `stop`. What is left then is in the ledger.
    pub(crate) async fn resend(&self, stop: CancellationToken) {
        let mut ways = FuturesUnordered::new();
        loop {
            for destination in self.destinations.ripe(Instant::now()) {
                ways.push(async move { self.work_off(&destination).await });
            }
            let next = self.destinations.next();
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.wake.notified() => {}
                Some(()) = ways.next() => {}
                () = sleep_until(next.unwrap_or_else(|| Instant::now() + IDLE_OUTBOX_WAIT)) => {}
            }
        }
        // What is being sent is given a moment, or it would be marked next time for nothing.
        tokio::select! {
            () = a_moment_after(&stop) => {}
            () = async { while ways.next().await.is_some() {} } => {}
        }
    }
}

/// Ends a moment after `stop`, so that an end does not wait for a platform that does not answer.
pub(crate) async fn a_moment_after(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(LAST_MOMENT).await;
}
