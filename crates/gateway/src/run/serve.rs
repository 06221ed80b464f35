//! From the first look at the sandboxes to the last turn.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, ready};
use futures::stream::{self, FuturesOrdered, Stream, StreamExt, select, select_all};
use hermetic_access::AdmissionRefusal;
use hermetic_chat::{Chat, ChatEvent, Receipt, ReceiveError, ReceivedEvent, UndeliveredReply};
use hermetic_session::SettleError;
use hermetic_store::StoreError;
use hermetic_types::{BackendKind, ButtonPress, DeletedMessage, IncomingMessage};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::arrival_order::{ArrivalOrder, ArrivalTurn};
use super::housekeeping::{HousekeepingTasks, PagePorts};
use super::proof::BackendProof;
use super::{
    AdoptionError, GatewaySignal, GatewayStage, LeaseLoss, ProofError, Report, ServingLease,
    SharedServing,
};
use crate::delivery::a_moment_after;
use crate::life::{MessageArrival, in_full};
use crate::message::AcceptedMessage;
use crate::{Gateway, GatewayParts};

/// Messages that are written down at the same time.
const MOST_TAKEN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Every turn came to its end.
    Clean,
    CutShort {
        /// Conversations in which something was interrupted.
        turns: usize,
    },
}

/// What the chats tell.
#[derive(Debug)]
enum HeardInChats {
    Event(Box<ReceivedEvent>),
    /// A platform is lost for good.
    Lost(ReceiveError),
    /// Every platform that is somebody else's has ended.
    OnlyOwnLeft,
}

/// Everything that happens in these chats. After `stop` it goes on until each of them has left, or a moment is
/// over: what an adapter holds then may be the only copy, and it puts that away while its stream is polled.
fn heard_in<'a>(
    chats: &'a [Arc<dyn Chat>],
    sharing: Option<&SharedServing>,
    stop: &CancellationToken,
) -> impl Stream<Item = HeardInChats> + use<'a> {
    let (own, others): (Vec<_>, Vec<_>) = chats.iter().partition(|chat| chat.is_own());
    // Nothing stands for the end of all that are somebody else's.
    let ended = (!others.is_empty()).then_some(HeardInChats::OnlyOwnLeft);
    let events = |chats: Vec<&'a Arc<dyn Chat>>| {
        let streams = chats.into_iter().map(|chat| match sharing {
            Some(sharing) if !chat.is_own() => sharing.receive(chat, stop.clone()),
            _ => chat.receive(stop.clone()),
        });
        select_all(streams.collect::<Vec<_>>()).map(|heard| match heard {
            Ok(received) => HeardInChats::Event(Box::new(received)),
            Err(error) => HeardInChats::Lost(error),
        })
    };
    let stop = stop.clone();
    let left = async move { a_moment_after(&stop).await };
    select(events(own), events(others).chain(stream::iter(ended))).take_until(left.boxed())
}

/// What became of an event that was taken over.
enum TakenEvent {
    Message(Box<AcceptedMessage>),
    Deletion(DeletedMessage),
    Edit(Box<IncomingMessage>, Receipt),
    Nothing,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("the sandboxes of an earlier run could not be settled")]
    Settle(#[from] SettleError),
    #[error("the {backend} backend does not work")]
    Proof {
        backend: BackendKind,
        source: ProofError,
    },
    #[error("what was left open could not be read")]
    Resume(#[from] StoreError),
    #[error("the lease on this installation is lost")]
    LeaseLost(#[source] LeaseLoss),
    #[error("another gateway's work may be this one's by now, and that is not known")]
    Adoption(#[from] AdoptionError),
    #[error("no chat platform is left to listen to")]
    NoChatLeft,
}

/// Serves until `stop`. Each change of condition is reported; messages are taken from the first
/// [`GatewayStage::Serving`] on.
///
/// Boxed so that dependants do not recompile the server future.
pub fn serve(
    parts: GatewayParts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> BoxFuture<'static, Result<DrainOutcome, ServeError>> {
    run(parts, health, stop, report).boxed()
}

async fn run(
    mut parts: GatewayParts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> Result<DrainOutcome, ServeError> {
    let intakes = std::mem::take(&mut parts.intakes);
    let export = parts.trace_export.take();
    let pages = PagePorts {
        port: health,
        socket: parts.dashboard_socket.take(),
        dashboard: parts.dashboard.take(),
    };
    let health = parts.lease.as_ref().map(ServingLease::health);
    let together = parts
        .lease
        .as_ref()
        .filter(|lease| lease.held().is_together());
    let sharing = together.map(|lease| {
        let process = lease.process();
        let (installation, host) = (process.installation.clone(), process.host.clone());
        SharedServing::new(parts.store.shared_work(), installation, host)
    });
    let is_shared = sharing.is_some();
    let lease = parts.lease.take();
    let mut gateway = Gateway::new(parts);
    gateway.spending.counted_by_others(is_shared);
    gateway.lease_health = health;
    gateway.sharing = sharing;
    let gateway = Arc::new(gateway);
    // Before anything is written: a start on a full disk waits from here on, and is seen to wait.
    gateway.store.wait_for_room();
    let housekeeping = HousekeepingTasks::start(&gateway, pages, export, intakes.len(), report);
    let living = live(&gateway, housekeeping, intakes, &stop);
    let Some(lease) = lease else {
        return living.await;
    };
    tokio::select! {
        // First: whoever wakes up late has other things to go on with, and none of them is its own any more.
        biased;
        // At once, as if killed: to interrupt a turn or to end a sandbox in an orderly way would be to act in
        // conversations that another gateway may have by now.
        loss = lease.lost() => Err(ServeError::LeaseLost(loss)),
        drained = living => {
            lease.release().await;
            drained
        }
    }
}

async fn live(
    gateway: &Arc<Gateway>,
    housekeeping: HousekeepingTasks,
    intakes: Vec<(TcpListener, axum::Router)>,
    stop: &CancellationToken,
) -> Result<DrainOutcome, ServeError> {
    let listened = match stop.run_until_cancelled(gateway.take_up_work()).await {
        None => Ok(()),
        Some(Ok(proof)) => gateway.serve(proof, &housekeeping, intakes, stop).await,
        Some(Err(error)) => Err(error),
    };
    // From the outside to the inside. Turns still send, ask and run things, so they end first;
    // housekeeping sends what they wrote; questions are rewritten for what the turns were told;
    // processes say what became of them while their sandboxes live; and sandboxes go last.
    gateway.stage.send_replace(GatewayStage::Draining);
    if let Some(sharing) = &gateway.sharing {
        // Nobody listens to the chats here any more, and turns may take long.
        sharing.begin_to_leave().await;
    }
    let drained = tokio::select! {
        drained = gateway.drain() => drained,
        never = Box::pin(gateway.share_while_leaving()) => match never {},
    };
    housekeeping.end().await;
    gateway.approvals.prompts.close().await;
    gateway.toolsets.background().close().await;
    gateway.sandboxes.drain().await;
    listened.map(|()| drained)
}

impl Gateway {
    /// What an earlier run left of sandboxes is settled, and those of this one are seen to work.
    async fn take_up_work(self: &Arc<Self>) -> Result<BackendProof, ServeError> {
        let settle = || self.sandboxes.settle();
        self.once_there_is_room("settle the sandboxes", settle)
            .await?;
        self.prove_backends_if_there_is_room().await
    }

    async fn serve(
        self: &Arc<Self>,
        proof: BackendProof,
        housekeeping: &HousekeepingTasks,
        intakes: Vec<(TcpListener, axum::Router)>,
        stop: &CancellationToken,
    ) -> Result<(), ServeError> {
        // Before what was left open is taken up, which may wait for room for long. The sandboxes of
        // an earlier run are settled by now, or the reaper would not know whose they are.
        housekeeping.begin(self, intakes);
        match stop.run_until_cancelled(self.resume()).await {
            None => return Ok(()),
            Some(resumed) => resumed?,
        }
        // Only now: by this `/health` says 200 and the service manager is told that the start is
        // over.
        self.stage.send_replace(GatewayStage::Serving);
        tokio::select! {
            listened = self.listen(stop) => listened,
            refuted = self.catch_up_on(proof) => Err(refuted),
            never = self.hear_notices() => match never {},
            never = self.keep_schedules() => match never {},
            shared = Box::pin(self.share_work()) => match shared? {},
        }
    }

    async fn listen(self: &Arc<Self>, stop: &CancellationToken) -> Result<(), ServeError> {
        if self.chats.is_empty() {
            stop.cancelled().await;
            return Ok(());
        }
        let mut heard = heard_in(&self.chats, self.sharing.as_ref(), stop);
        // Written down together, handed over in the order they came.
        let mut accepting = FuturesOrdered::new();
        let mut order = ArrivalOrder::default();
        let ended = loop {
            let next = tokio::select! {
                // What is on the disk is handed over before more is heard: under a flood the others
                // would otherwise never come to their turn.
                biased;
                Some(taken) = accepting.next(), if !accepting.is_empty() => {
                    self.hand_over_taken(taken, stop);
                    if accepting.is_empty() {
                        order.forget();
                    }
                    continue;
                }
                next = heard.next(), if accepting.len() < MOST_TAKEN => next,
            };
            match next {
                Some(HeardInChats::Event(received)) => match received.event {
                    ChatEvent::Message(incoming) => {
                        let turn = order.turn_at(&incoming.account, &incoming.place);
                        let accepted = self.take_message(incoming, received.receipt, turn);
                        accepting.push_back(Either::Left(accepted));
                    }
                    // Behind the message that it may be about.
                    ChatEvent::Deleted(deleted) => {
                        received.receipt.stored();
                        accepting.push_back(Either::Right(ready(TakenEvent::Deletion(deleted))));
                    }
                    ChatEvent::Edited(edited) => {
                        let edit = TakenEvent::Edit(Box::new(edited), received.receipt);
                        accepting.push_back(Either::Right(ready(edit)));
                    }
                    ChatEvent::Press(press) => self.hear_press(press, received.receipt),
                    ChatEvent::Undelivered(reply) => self.note_undelivered(reply, received.receipt),
                },
                Some(HeardInChats::Lost(error)) => {
                    tracing::error!(%error, "a chat platform is lost");
                }
                None if stop.is_cancelled() => break Ok(()),
                // Our own may be about to leave still.
                Some(HeardInChats::OnlyOwnLeft) if stop.is_cancelled() => {}
                None | Some(HeardInChats::OnlyOwnLeft) => break Err(ServeError::NoChatLeft),
            }
        };
        while let Some(taken) = accepting.next().await {
            self.hand_over_taken(taken, stop);
        }
        ended
    }

    async fn take_message(
        &self,
        incoming: IncomingMessage,
        receipt: Receipt,
        mut turn: ArrivalTurn,
    ) -> TakenEvent {
        let arrival = MessageArrival::Chat(receipt);
        let accepted = self.accept_in_order(incoming, arrival, &mut turn).await;
        // One that was turned away waits for those before it, too.
        turn.comes().await;
        drop(turn);
        match accepted {
            Ok(Some(message)) => TakenEvent::Message(Box::new(message)),
            Ok(None) => TakenEvent::Nothing,
            // The receipt was not signed, so it comes again.
            Err(error) => {
                tracing::error!(error = %in_full(&error), "a message could not be written down");
                TakenEvent::Nothing
            }
        }
    }

    fn hand_over_taken(self: &Arc<Self>, taken: TakenEvent, stop: &CancellationToken) {
        match taken {
            // Written down, and left to the next start: begun now, it would only be interrupted.
            TakenEvent::Message(message) if stop.is_cancelled() => drop(message),
            TakenEvent::Message(message) => self.hand_over(*message, self.settings.busy),
            TakenEvent::Deletion(deleted) => {
                self.conversations.withdraw(&deleted, &self.turns);
                self.tell_others(GatewaySignal::Deleted(deleted));
            }
            TakenEvent::Edit(edited, receipt) => self.hear_edit(*edited, receipt),
            TakenEvent::Nothing => {}
        }
    }

    /// The receipt is signed when the answer is written down; one that could not be comes again.
    fn hear_press(self: &Arc<Self>, press: ButtonPress, receipt: Receipt) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            match gateway.access.admit_press(press).await {
                Ok(press) => gateway.press(&press, receipt).await,
                // It comes again.
                Err(AdmissionRefusal::CannotTell) => drop(receipt),
                Err(_) => receipt.stored(),
            }
        });
    }

    /// Signed when the ledger says so.
    fn note_undelivered(self: &Arc<Self>, reply: UndeliveredReply, receipt: Receipt) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            match gateway.outbox.note_undelivered(&reply).await {
                Ok(()) => receipt.stored(),
                Err(error) => tracing::error!(%error, "a lost reply could not be noted"),
            }
        });
    }

    /// What waits for a person is left to the next start. After the grace period what still runs is
    /// interrupted; each turn says so in its reply, or is left to those that serve beside this gateway.
    async fn drain(&self) -> DrainOutcome {
        // First of all: turns that only wait for a person end at once, and do not use up the time
        // that the others have.
        self.approvals.questions.leave();
        self.turns.close();
        if timeout(self.settings.grace, self.turns.wait())
            .await
            .is_ok()
        {
            return DrainOutcome::Clean;
        }
        let turns = self.turns.len();
        self.cut.cancel();
        // What cannot be written by now is found unfinished by the next start.
        self.store.stop_waiting_for_room();
        self.turns.wait().await;
        DrainOutcome::CutShort { turns }
    }
}
