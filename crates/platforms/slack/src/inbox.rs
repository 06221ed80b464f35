//! Events on their way from Slack to the gateway's store.
//!
//! Stored, then acknowledged. Slack waits three seconds for that and then sends the event again, three
//! times within some six minutes; what it sends meanwhile is the same event and waits for the same
//! receipt. An event whose receipt comes back unsigned is handed out again from here, because Slack gives
//! up before a full disk does. Pressed buttons and slash commands come only once, so holding back their
//! acknowledgement would bring nothing but an error under the person's eyes: they are acknowledged in
//! time, stored or not.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future;
use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_chat::{
    AdapterStateError, Backoff, ChannelPositions, ChatEvent, Position, Receipt, ReceiptWaiter,
    ReceivedEvent, RecentKeys,
};
use hermetic_types::{ChatId, UpdateId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::acknowledgement::EventAcknowledgement;
use crate::config::SlackTiming;
use crate::held_events::{HeldEvent, HeldEvents};

/// Events that wait for their receipts. Beyond that Slack has to wait, and keeps them.
const MOST_UNSETTLED: usize = 512;
/// Repetitions of one event that are acknowledged.
const MOST_REPETITIONS: usize = 16;

#[derive(Debug)]
pub(crate) struct EventInbox {
    hand_in: mpsc::Sender<ReceivedEvent>,
    to_settle: mpsc::UnboundedSender<UnsettledEvent>,
    room: Arc<Semaphore>,
    positions: ChannelPositions,
    pending: Mutex<HashMap<UpdateId, Vec<EventAcknowledgement>>>,
    held: Mutex<HeldEvents>,
    /// Survives the inbox: what was stored before a reconnect is not handed out once more.
    stored: Arc<Mutex<RecentKeys<UpdateId>>>,
    retry: (Duration, Duration),
    acknowledge_within: Duration,
}

/// Where in the channels' histories an event stands, if it stands in one.
pub(crate) type HistoryPlace = Option<(ChatId, Position)>;

/// An event that was handed out and is not stored yet.
#[derive(Debug)]
pub(crate) struct UnsettledEvent {
    event: ChatEvent,
    update: UpdateId,
    at: HistoryPlace,
    counterfoil: ReceiptWaiter,
    _room: OwnedSemaphorePermit,
}

pub(crate) type UnsettledEvents = mpsc::UnboundedReceiver<UnsettledEvent>;

impl EventInbox {
    pub(crate) fn new(
        hand_in: mpsc::Sender<ReceivedEvent>,
        positions: ChannelPositions,
        stored: Arc<Mutex<RecentKeys<UpdateId>>>,
        timing: &SlackTiming,
    ) -> (Self, UnsettledEvents) {
        // Bounded by `room`.
        let (to_settle, unsettled) = mpsc::unbounded_channel();
        let inbox = Self {
            hand_in,
            to_settle,
            room: Arc::new(Semaphore::new(MOST_UNSETTLED)),
            positions,
            pending: Mutex::default(),
            held: Mutex::default(),
            stored,
            retry: timing.retry,
            acknowledge_within: timing.acknowledge_within,
        };
        (inbox, unsettled)
    }

    pub(crate) fn positions(&self) -> &ChannelPositions {
        &self.positions
    }

    /// Hands an event out, in the order of the calls; a live one behind what its channel's history has to
    /// say first. One that is known is acknowledged when it is stored, or at once if it is.
    pub(crate) async fn take(
        &self,
        event: ChatEvent,
        at: HistoryPlace,
        acknowledgement: EventAcknowledgement,
    ) {
        match (at, acknowledgement) {
            (Some(at), live) if !matches!(live, EventAcknowledgement::Nobody) => {
                let goes = self.held().hold(event, at, live);
                self.take_all(goes).await;
            }
            (at, acknowledgement) => self.take_now(event, at, acknowledgement).await,
        }
    }

    /// A sweep begins: live events wait for it, channel by channel.
    pub(crate) fn begin_sweep(&self) {
        self.held().begin_sweep();
    }

    pub(crate) async fn end_sweep(&self) {
        let released = self.held().end_sweep();
        self.take_all(released).await;
    }

    /// What a channel's history held is handed out.
    pub(crate) async fn release(&self, chat: &ChatId) {
        let released = self.held().release(chat);
        self.take_all(released).await;
    }

    pub(crate) async fn release_overdue(&self) {
        let released = self.held().release_overdue();
        self.take_all(released).await;
    }

    /// Whether a live event waits for this channel's history.
    pub(crate) fn holds(&self, chat: &ChatId) -> bool {
        self.held().holds(chat)
    }

    async fn take_all(&self, events: impl IntoIterator<Item = HeldEvent>) {
        for held in events {
            let at = Some(held.at);
            self.take_now(held.event, at, held.acknowledgement).await;
        }
    }

    async fn take_now(
        &self,
        event: ChatEvent,
        at: HistoryPlace,
        acknowledgement: EventAcknowledgement,
    ) {
        let Some(update) = update_of(&event).cloned() else {
            return;
        };
        if !self.begin(&update, acknowledgement) {
            return;
        }
        let begun = BegunEvent {
            inbox: self,
            update: Some(update),
        };
        // Noted as pending before it waits for room, so that a repetition joins it instead of
        // taking a second place.
        let Ok(room) = Arc::clone(&self.room).acquire_owned().await else {
            return;
        };
        if let Some((chat, position)) = &at
            && let Err(error) = self.positions.hand_out(chat, *position).await
        {
            warn!(%error, "an event of slack is left to be sent again");
            return;
        }
        // Behind its position: a channel that is not on the disk could not be swept if the process
        // ended right here.
        let Some(counterfoil) = self.hand_out(event.clone()).await else {
            return;
        };
        let Some(update) = begun.handed_out() else {
            return;
        };
        let unsettled = UnsettledEvent {
            event,
            update,
            at,
            counterfoil,
            _room: room,
        };
        // Nobody settles any more when listening ended: the event comes again.
        let _ = self.to_settle.send(unsettled);
    }

    /// Hands out something that is not stored.
    pub(crate) async fn tell(&self, event: ChatEvent) {
        // Signed or not: it does not come again.
        let _ = self.hand_out(event).await;
    }

    /// Moves the channel's position past something that is not for us.
    pub(crate) async fn pass_over(
        &self,
        chat: &ChatId,
        at: Position,
    ) -> Result<(), AdapterStateError> {
        self.positions.hand_out(chat, at).await?;
        let (receipt, counterfoil) = Receipt::pair();
        receipt.stored();
        self.positions.settle(chat, at, counterfoil).await.map(drop)
    }

    /// Acknowledges an event before it is stored.
    pub(crate) fn acknowledge(&self, update: &UpdateId) {
        let waiting = self.pending().get_mut(update).map(std::mem::take);
        for acknowledgement in waiting.into_iter().flatten() {
            acknowledgement.give();
        }
    }

    /// Settles what is handed out, for as long as it is polled.
    pub(crate) async fn settle_all(&self, mut unsettled: UnsettledEvents) -> Infallible {
        let mut settling = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(one) = unsettled.recv() => settling.push(self.settle(one)),
                Some(()) = settling.next(), if !settling.is_empty() => {}
                else => future::pending().await,
            }
        }
    }

    async fn settle(&self, one: UnsettledEvent) {
        let UnsettledEvent {
            event,
            update,
            at,
            mut counterfoil,
            _room,
        } = one;
        let mut backoff = Backoff::new(self.retry.0, self.retry.1);
        let comes_once = at.is_none();
        loop {
            let stored = self.is_stored(&at, counterfoil);
            tokio::pin!(stored);
            let in_time = match comes_once {
                true => timeout(self.acknowledge_within, &mut stored).await.ok(),
                false => None,
            };
            let stored = match in_time {
                Some(stored) => stored,
                None => {
                    if comes_once {
                        // Acknowledged unstored: Slack shows the person an error after three
                        // seconds and does not send it again, so to wait would only add that.
                        self.acknowledge(&update);
                    }
                    stored.await
                }
            };
            if stored {
                break;
            }
            // From here and not by Slack, which gives up after some six minutes; a disk may be full
            // for longer.
            warn!(%update, "an event of slack was not stored; it is handed out again");
            sleep(backoff.next_wait()).await;
            let Some(again) = self.hand_out(event.clone()).await else {
                return;
            };
            counterfoil = again;
        }
        // Known before it leaves `pending`, or a repetition in between would be handed out.
        self.stored().note(update.clone(), ());
        let waiting = self.pending().remove(&update);
        for acknowledgement in waiting.into_iter().flatten() {
            acknowledgement.give();
        }
    }

    async fn is_stored(&self, at: &HistoryPlace, counterfoil: ReceiptWaiter) -> bool {
        let Some((chat, position)) = at else {
            return counterfoil.signed().await;
        };
        match self.positions.settle(chat, *position, counterfoil).await {
            Ok(stored) => stored,
            // The event is stored; only its position is not, and a sweep will find what is known.
            Err(error) => {
                warn!(%error, "the position of a slack channel could not be saved");
                true
            }
        }
    }

    async fn hand_out(&self, event: ChatEvent) -> Option<ReceiptWaiter> {
        let (receipt, counterfoil) = Receipt::pair();
        let received = ReceivedEvent { event, receipt };
        self.hand_in.send(received).await.ok()?;
        Some(counterfoil)
    }

    /// Whether the event is new.
    fn begin(&self, update: &UpdateId, acknowledgement: EventAcknowledgement) -> bool {
        let mut pending = self.pending();
        if let Some(waiting) = pending.get_mut(update) {
            // Slack repeats three times; whoever plays Slack and repeats more often gets no answer.
            if waiting.len() < MOST_REPETITIONS {
                waiting.push(acknowledgement);
            }
            return false;
        }
        if self.stored().contains(update) {
            acknowledgement.give();
            return false;
        }
        pending.insert(update.clone(), vec![acknowledgement]);
        true
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<UpdateId, Vec<EventAcknowledgement>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HeldEvents> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> MutexGuard<'_, RecentKeys<UpdateId>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event that is about to be handed out. A request that ends before that takes it along, and the
/// next repetition is handed out instead.
struct BegunEvent<'a> {
    inbox: &'a EventInbox,
    update: Option<UpdateId>,
}

impl BegunEvent<'_> {
    fn handed_out(mut self) -> Option<UpdateId> {
        self.update.take()
    }
}

impl Drop for BegunEvent<'_> {
    fn drop(&mut self) {
        if let Some(update) = &self.update {
            self.inbox.pending().remove(update);
        }
    }
}

/// A deletion has no name of its own: it is told, and not taken.
fn update_of(event: &ChatEvent) -> Option<&UpdateId> {
    match event {
        ChatEvent::Message(message) | ChatEvent::Edited(message) => Some(&message.update),
        ChatEvent::Press(press) => Some(&press.update),
        ChatEvent::Deleted(_) | ChatEvent::Undelivered(_) => None,
    }
}
