//! From the first look at the sandboxes to the last turn.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, ready};
use futures::stream::{FuturesOrdered, StreamExt, select_all};
use hermetic_chat::{Event, Receipt};
use hermetic_session::SettleError;
use hermetic_store::StoreError;
use hermetic_types::{BackendKind, DeletedMessage, Incoming, Press};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::housekeeping::Housekeeping;
use super::proof::Proof;
use super::{ProofError, Report, Stage};
use crate::life::{Arrival, in_full};
use crate::message::AcceptedMessage;
use crate::{Gateway, Parts};

/// Messages that are written down at the same time.
const MOST_TAKEN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every turn came to its end.
    Clean,
    CutShort {
        /// Conversations in which something was interrupted.
        turns: usize,
    },
}

/// What became of an event that was taken over.
enum Taken {
    Message(Box<AcceptedMessage>),
    Deletion(DeletedMessage),
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
    #[error("no chat platform is left to listen to")]
    NoChatLeft,
}

/// Serves until `stop`. Each change of condition is reported; messages are taken from the first
/// [`Stage::Serving`] on.
///
/// Boxed so that dependants do not recompile the server future.
pub fn serve(
    parts: Parts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> BoxFuture<'static, Result<Drained, ServeError>> {
    run(parts, health, stop, report).boxed()
}

async fn run(
    mut parts: Parts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> Result<Drained, ServeError> {
    let intakes = std::mem::take(&mut parts.intakes);
    let gateway = Arc::new(Gateway::new(parts));
    gateway.store.wait_for_room();
    let housekeeping = Housekeeping::start(&gateway, health, intakes.len(), report);
    let listened = match stop.run_until_cancelled(gateway.take_up_work()).await {
        None => Ok(()),
        Some(Ok(proof)) => gateway.serve(proof, &housekeeping, intakes, &stop).await,
        Some(Err(error)) => Err(error),
    };
    gateway.stage.send_replace(Stage::Draining);
    let drained = gateway.drain().await;
    housekeeping.end().await;
    gateway.approvals.prompts.close().await;
    gateway.toolsets.background().close().await;
    gateway.sandboxes.drain().await;
    listened.map(|()| drained)
}

impl Gateway {
    /// What an earlier run left of sandboxes is settled, and those of this one are seen to work.
    async fn take_up_work(self: &Arc<Self>) -> Result<Proof, ServeError> {
        let settle = || self.sandboxes.settle().boxed();
        self.once_there_is_room("settle the sandboxes", settle)
            .await?;
        self.prove_backends_if_there_is_room().await
    }

    async fn serve(
        self: &Arc<Self>,
        proof: Proof,
        housekeeping: &Housekeeping,
        intakes: Vec<(TcpListener, axum::Router)>,
        stop: &CancellationToken,
    ) -> Result<(), ServeError> {
        housekeeping.begin(self, intakes);
        match stop.run_until_cancelled(self.resume()).await {
            None => return Ok(()),
            Some(resumed) => resumed?,
        }
        self.stage.send_replace(Stage::Serving);
        tokio::select! {
            listened = self.listen(stop) => listened,
            refuted = self.catch_up_on(proof) => Err(refuted),
            never = self.hear_notices() => match never {},
        }
    }

    async fn listen(self: &Arc<Self>, stop: &CancellationToken) -> Result<(), ServeError> {
        if self.chats.is_empty() {
            stop.cancelled().await;
            return Ok(());
        }
        let mut heard = select_all(self.chats.iter().map(|chat| chat.receive(stop.clone())));
        // Written down together, handed over in the order they came.
        let mut accepting = FuturesOrdered::new();
        let ended = loop {
            let next = tokio::select! {
                biased;
                Some(taken) = accepting.next(), if !accepting.is_empty() => {
                    self.hand_over_taken(taken);
                    continue;
                }
                next = stop.run_until_cancelled(heard.next()), if accepting.len() < MOST_TAKEN => next,
            };
            match next {
                None => break Ok(()),
                Some(Some(Ok(received))) => match received.event {
                    Event::Message(incoming) => {
                        let accepted = self.take_message(incoming, received.receipt);
                        accepting.push_back(Either::Left(accepted));
                    }
                    // Behind the message that it may be about.
                    Event::Deleted(deleted) => {
                        received.receipt.stored();
                        accepting.push_back(Either::Right(ready(Taken::Deletion(deleted))));
                    }
                    Event::Press(press) => self.hear_press(press, received.receipt),
                },
                Some(Some(Err(error))) => tracing::error!(%error, "a chat platform is lost"),
                Some(None) if stop.is_cancelled() => break Ok(()),
                Some(None) => break Err(ServeError::NoChatLeft),
            }
        };
        while let Some(taken) = accepting.next().await {
            self.hand_over_taken(taken);
        }
        ended
    }

    async fn take_message(&self, incoming: Incoming, receipt: Receipt) -> Taken {
        match self.accept(incoming, Arrival::Chat(receipt)).await {
            Ok(Some(message)) => Taken::Message(Box::new(message)),
            Ok(None) => Taken::Nothing,
            // The receipt was not signed, so it comes again.
            Err(error) => {
                tracing::error!(error = %in_full(&error), "a message could not be written down");
                Taken::Nothing
            }
        }
    }

    fn hand_over_taken(self: &Arc<Self>, taken: Taken) {
        match taken {
            Taken::Message(message) => self.hand_over(*message, self.settings.busy),
            Taken::Deletion(deleted) => self.conversations.withdraw(&deleted),
            Taken::Nothing => {}
        }
    }

    /// The receipt is signed when the answer is written down; one that could not be comes again.
    fn hear_press(self: &Arc<Self>, press: Press, receipt: Receipt) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            match gateway.access.admit_press(press).await {
                Ok(press) => gateway.press(&press, receipt).await,
                Err(_) => receipt.stored(),
            }
        });
    }

    /// What waits for a person is left to the next start. After the grace period what still runs is
    /// interrupted; each turn says so in its reply.
    async fn drain(&self) -> Drained {
        self.approvals.questions.leave();
        self.turns.close();
        if timeout(self.settings.grace, self.turns.wait())
            .await
            .is_ok()
        {
            return Drained::Clean;
        }
        let turns = self.turns.len();
        self.cut.cancel();
        // What cannot be written by now is found unfinished by the next start.
        self.store.stop_waiting_for_room();
        self.turns.wait().await;
        Drained::CutShort { turns }
    }
}
