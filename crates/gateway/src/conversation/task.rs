//! The task of one live conversation.
//!
//! It sorts what comes in and never waits for work itself: turns, commands and asides run as tasks of
//! its own, and their ends come back to it. So an interruption is heard while a turn runs, and nobody
//! else decides what runs next here.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use hermetic_access::Admitted;
use hermetic_types::{ConversationKey, MessageId, UserId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::queues::{ConversationQueues, EditOutcome, Edited, Enqueued, QueueKind};
use super::registry::ConversationActivity;
use super::turn_limits::QueuedTurn;
use super::{InterruptionReport, Notified, TurnControl};
use crate::life::MessageOutcome;
use crate::message::{AcceptedMessage, ChatCommand};
use crate::{BusyMode, Gateway, wording};

#[derive(Debug)]
pub(super) enum ConversationEvent {
    Message(Box<AcceptedMessage>, BusyMode),
    Stop(oneshot::Sender<InterruptionReport>),
    /// What a `/stop` met when it was heard.
    StopReport(oneshot::Sender<InterruptionReport>),
    Deleted(MessageId),
    /// Whether this person's message waits or is at work here.
    Find(MessageId, UserId, oneshot::Sender<bool>),
    Edited(Box<Admitted>, oneshot::Sender<EditOutcome>),
    Describe(oneshot::Sender<ConversationActivity>),
}

pub(super) struct ConversationTask {
    gateway: Arc<Gateway>,
    conversation: ConversationKey,
    inbox: mpsc::Receiver<ConversationEvent>,
    queues: ConversationQueues,
    working: JoinSet<FinishedWork>,
    /// Of the first message, taken when it was handed over: tasks of several conversations of one person
    /// may run in any order, and their turns shall not.
    first_position: Option<Position>,
    /// Work that waits for a person was left to the next start of the gateway.
    deferred: bool,
    /// What each `/stop` met whose answer is still being written.
    stops: VecDeque<InterruptionReport>,
}

/// The position of a message among its sender's turns; none for what needs none.
type Position = Result<Option<QueuedTurn>, Notified>;

/// What has ended.
enum FinishedWork {
    Queued(QueueKind, MessageOutcome),
    Aside(CancellationToken),
    /// Work that neither queue knows of.
    Unlisted,
}

impl ConversationTask {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        first: &AcceptedMessage,
        inbox: mpsc::Receiver<ConversationEvent>,
    ) -> Self {
        Self {
            queues: ConversationQueues::new(gateway.cut.clone())
                .steered_by_sender_only(gateway.spending.bounds_persons()),
            first_position: Some(position(&gateway, first)),
            gateway,
            conversation: first.conversation().clone(),
            inbox,
            working: JoinSet::new(),
            deferred: false,
            stops: VecDeque::new(),
        }
    }

    /// Until nothing runs and nothing waits.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                Some(event) = self.inbox.recv() => self.hear(event),
                Some(ended) = self.working.join_next() => match ended {
                    Ok(finished) => self.finish(finished),
                    // Only what neither queue knows of: the others come to their end here whatever
                    // happens, or what waits behind them would wait for ever.
                    Err(error) => tracing::error!(%error, "work on a conversation broke off"),
                },
                // The registry holds the other end of the inbox until this task retires.
                else => return,
            }
            // What was left to the next start stays "at work" in its queue, so that nothing
            // overtakes it. The task ends all the same, or the gateway that stops would wait for
            // it.
            let nothing_left = self.queues.is_idle() || self.deferred;
            if nothing_left
                && self.working.is_empty()
                && self
                    .gateway
                    .conversations
                    .retire(&self.conversation, &self.inbox)
            {
                return;
            }
        }
    }

    fn hear(&mut self, event: ConversationEvent) {
        match event {
            ConversationEvent::Message(message, busy) => self.sort(*message, busy),
            // Whoever asked may have given up.
            ConversationEvent::Stop(answer) => {
                let _ = answer.send(self.queues.stop());
            }
            ConversationEvent::StopReport(answer) => {
                let met = self.stops.pop_front();
                let _ = answer.send(met.unwrap_or_else(|| self.queues.stop()));
            }
            ConversationEvent::Deleted(message) => {
                let dropped = self.queues.withdraw(&message);
                let note = "deleted before its turn came";
                // Only what still waited is ended here. What was at work ends by being interrupted,
                // and says so itself.
                self.gateway.drop_later(dropped.into_iter().collect(), note);
            }
            ConversationEvent::Find(message, sender, answer) => {
                let _ = answer.send(self.queues.knows(&message, &sender));
            }
            ConversationEvent::Edited(edited, answer) => {
                let _ = answer.send(self.edit(*edited));
            }
            ConversationEvent::Describe(answer) => {
                let activity = ConversationActivity {
                    at_work: self.queues.is_at_work(),
                    waiting: self.queues.waiting(),
                };
                let _ = answer.send(activity);
            }
        }
    }

    fn edit(&mut self, edited: Admitted) -> EditOutcome {
        let gateway = Arc::clone(&self.gateway);
        let is_command = |message: &AcceptedMessage| gateway.slash(message).is_some();
        match self.queues.edit(edited, is_command) {
            Edited::InPlace(message) => EditOutcome::Replaced(Box::new(message)),
            Edited::TakenOut(message) => {
                // What was said into the turn is said into it again.
                self.sort(message.clone(), BusyMode::Steer);
                EditOutcome::Replaced(Box::new(message))
            }
            Edited::AtWork => EditOutcome::AtWork,
            Edited::TooLate => EditOutcome::TooLate,
        }
    }

    /// Commands do not wait for a turn.
    fn sort(&mut self, message: AcceptedMessage, busy: BusyMode) {
        // Taken by the first message whatever becomes of it: where it does not start, dropping it
        // gives the position back.
        let reserved = self.first_position.take();
        let gateway = Arc::clone(&self.gateway);
        match gateway.slash(&message) {
            // Before anything that a command does when it is sorted: a `/stop` or `/destroy yes` of
            // somebody who may not is not to interrupt first and be refused then.
            Some(slash)
                if !gateway
                    .settings
                    .command_access
                    .let_through(&message, &slash) =>
            {
                gateway.turn_away(message, wording::NOT_FOR_YOU);
            }
            Some(slash) if self.takes_over(&message, &slash) => {
                let (enqueued, dropped) = self.queues.cut_in(message);
                // On its own: the disk may have no room to write it down, and others are to be heard.
                gateway.drop_later(dropped, "dropped by a new conversation");
                self.follow(QueueKind::Turns, enqueued, reserved);
            }
            Some(slash) if slash.takes_a_turn() => {
                // After what runs, or in its place: never beside it. It is none of its words.
                let busy = match busy {
                    BusyMode::Steer => BusyMode::Queue,
                    busy => busy,
                };
                let enqueued = self.queues.enqueue_turn(message, busy);
                self.follow(QueueKind::Turns, enqueued, reserved);
            }
            Some(slash) if slash.works() => {
                let enqueued = self.queues.enqueue_command(message);
                self.follow(QueueKind::Commands, enqueued, reserved);
            }
            Some(slash) => {
                // Now, and not when it is answered: what was written after it is not meant.
                if slash == ChatCommand::Stop {
                    self.stops.push_back(self.queues.stop());
                }
                self.run_aside(message, &slash);
            }
            None => {
                let Some(message) = gateway.take_clarification(message) else {
                    return;
                };
                let enqueued = self.queues.enqueue_turn(message, busy);
                self.follow(QueueKind::Turns, enqueued, reserved);
            }
        }
    }

    /// Whether it takes the conversation's place: what runs is interrupted, what waits is dropped.
    fn takes_over(&self, message: &AcceptedMessage, slash: &ChatCommand) -> bool {
        match slash {
            ChatCommand::New | ChatCommand::Forget => true,
            ChatCommand::Destroy(word) => self.gateway.destroys_now(message, word),
            _ => false,
        }
    }

    fn follow(&mut self, queue: QueueKind, enqueued: Enqueued, reserved: Option<Position>) {
        match enqueued {
            Enqueued::Starts(message, control) => {
                let position = reserved.unwrap_or_else(|| position(&self.gateway, &message));
                self.start(queue, *message, control, position);
            }
            Enqueued::Waits | Enqueued::Steers => {}
            Enqueued::Full(message, notified) => {
                self.gateway
                    .not_heard(*message, wording::QUEUE_FULL, notified);
            }
        }
    }

    fn start(
        &mut self,
        queue: QueueKind,
        message: AcceptedMessage,
        control: TurnControl,
        position: Position,
    ) {
        let gateway = Arc::clone(&self.gateway);
        let work = async move {
            match position {
                Ok(queued) => {
                    // Held to the end of the turn, with delivery: a turn that still sends is one of
                    // its person's.
                    let _permit = control.wait_for(queued).await;
                    Box::pin(gateway.drive(&message, &control)).await
                }
                Err(notified) => {
                    gateway.not_heard(message, wording::TOO_MANY_AT_WORK, notified);
                    MessageOutcome::Ended
                }
            }
        };
        self.working.spawn(async move {
            let outcome = unless_it_panics(work).await;
            FinishedWork::Queued(queue, outcome.unwrap_or(MessageOutcome::Ended))
        });
    }

    fn run_aside(&mut self, message: AcceptedMessage, slash: &ChatCommand) {
        let gateway = Arc::clone(&self.gateway);
        // Those end what runs or let it go on, so there is always room for them.
        if matches!(
            slash,
            ChatCommand::Stop | ChatCommand::Approve(_) | ChatCommand::Deny(_)
        ) {
            let control = TurnControl::below(&gateway.cut);
            self.working.spawn(async move {
                Box::pin(gateway.drive(&message, &control)).await;
                FinishedWork::Unlisted
            });
            return;
        }
        match self.queues.begin_aside() {
            Ok(control) => {
                self.working.spawn(async move {
                    unless_it_panics(Box::pin(gateway.drive(&message, &control))).await;
                    FinishedWork::Aside(control.stop)
                });
            }
            Err(notified) => gateway.not_heard(message, wording::QUEUE_FULL, notified),
        }
    }

    fn finish(&mut self, finished: FinishedWork) {
        match finished {
            // What comes after it waits with it.
            FinishedWork::Queued(_, MessageOutcome::Deferred) => self.deferred = true,
            FinishedWork::Queued(queue, MessageOutcome::Ended) => {
                if let Some((message, control)) = self.queues.next(queue) {
                    let position = position(&self.gateway, &message);
                    self.start(queue, message, control, position);
                }
            }
            FinishedWork::Aside(stop) => self.queues.end_aside(&stop),
            FinishedWork::Unlisted => {}
        }
    }
}

/// Nothing if it panicked where nobody else catches that. Its message stays open for the next start.
async fn unless_it_panics<T>(work: impl Future<Output = T>) -> Option<T> {
    let worked = AssertUnwindSafe(work).catch_unwind().await;
    if worked.is_err() {
        tracing::error!("work on a conversation broke down; this is a bug");
    }
    worked.ok()
}

/// What only ends things or tells about them needs no position.
fn position(gateway: &Gateway, message: &AcceptedMessage) -> Position {
    match gateway.slash(message) {
        Some(slash) if !slash.works() && !slash.asks_model() => Ok(None),
        _ => gateway.turn_limits.enqueue(message).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_breaks_down_comes_to_an_end() {
        let broken = unless_it_panics(async { panic!("a bug") });
        assert_eq!(broken.await, None::<()>);
        assert_eq!(unless_it_panics(async { 7 }).await, Some(7));
    }
}
