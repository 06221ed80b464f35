//! The task of one live conversation.
//!
//! It sorts what comes in and never waits for work itself: turns, commands and asides run as tasks of
//! its own, and their ends come back to it. So an interruption is heard while a turn runs, and nobody
//! else decides what runs next here.

use std::sync::Arc;

use hermetic_types::{ConversationKey, MessageId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::queues::{ConversationQueues, Enqueued, Queue};
use super::registry::Activity;
use super::turn_limits::QueuedTurn;
use super::{Interrupted, Notified, TurnControl};
use crate::life::Outcome;
use crate::message::{AcceptedMessage, Slash};
use crate::{Busy, Gateway, wording};

#[derive(Debug)]
pub(super) enum ConversationEvent {
    Message(Box<AcceptedMessage>, Busy),
    Stop(oneshot::Sender<Interrupted>),
    Deleted(MessageId),
    Describe(oneshot::Sender<Activity>),
}

pub(super) struct ConversationTask {
    gateway: Arc<Gateway>,
    conversation: ConversationKey,
    inbox: mpsc::Receiver<ConversationEvent>,
    queues: ConversationQueues,
    working: JoinSet<Finished>,
    /// Of the first message, taken when it was handed over: tasks of several conversations of one person
    /// may run in any order, and their turns shall not.
    first_position: Option<Position>,
    /// Work that waits for a person was left to the next start of the gateway.
    deferred: bool,
}

/// The position of a message among its sender's turns; none for what needs none.
type Position = Result<Option<QueuedTurn>, Notified>;

/// What has ended.
enum Finished {
    Queued(Queue, Outcome),
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
            queues: ConversationQueues::new(gateway.cut.clone()),
            first_position: Some(position(&gateway, first)),
            gateway,
            conversation: first.conversation().clone(),
            inbox,
            working: JoinSet::new(),
            deferred: false,
        }
    }

    /// Until nothing runs and nothing waits.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                Some(event) = self.inbox.recv() => self.hear(event),
                Some(ended) = self.working.join_next() => match ended {
                    Ok(finished) => self.finish(finished),
                    // Whatever drives a message catches its panics; this one had none to drive.
                    Err(error) => tracing::error!(%error, "work on a conversation broke off"),
                },
                // The registry holds the other end of the inbox until this task retires.
                else => return,
            }
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
            ConversationEvent::Deleted(message) => {
                let dropped = self.queues.withdraw(&message);
                let note = "deleted before its turn came";
                self.gateway.drop_later(dropped.into_iter().collect(), note);
            }
            ConversationEvent::Describe(answer) => {
                let activity = Activity {
                    at_work: self.queues.is_at_work(),
                    waiting: self.queues.waiting(),
                };
                let _ = answer.send(activity);
            }
        }
    }

    /// Commands do not wait for a turn.
    fn sort(&mut self, message: AcceptedMessage, busy: Busy) {
        let reserved = self.first_position.take();
        let gateway = Arc::clone(&self.gateway);
        match gateway.slash(&message) {
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
                self.follow(Queue::Turns, enqueued, reserved);
            }
            Some(slash) if slash.works() => {
                let enqueued = self.queues.enqueue_command(message);
                self.follow(Queue::Commands, enqueued, reserved);
            }
            Some(slash) => self.run_aside(message, &slash),
            None => {
                let enqueued = self.queues.enqueue_turn(message, busy);
                self.follow(Queue::Turns, enqueued, reserved);
            }
        }
    }

    /// Whether it takes the conversation's place: what runs is interrupted, what waits is dropped.
    fn takes_over(&self, message: &AcceptedMessage, slash: &Slash) -> bool {
        match slash {
            Slash::New => true,
            Slash::Destroy(word) => self.gateway.destroys_now(message, word),
            _ => false,
        }
    }

    fn follow(&mut self, queue: Queue, enqueued: Enqueued, reserved: Option<Position>) {
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
        queue: Queue,
        message: AcceptedMessage,
        control: TurnControl,
        position: Position,
    ) {
        let gateway = Arc::clone(&self.gateway);
        self.working.spawn(async move {
            let outcome = match position {
                Ok(queued) => {
                    let _permit = control.wait_for(queued).await;
                    gateway.drive(&message, &control).await
                }
                Err(notified) => {
                    gateway.not_heard(message, wording::TOO_MANY_AT_WORK, notified);
                    Outcome::Ended
                }
            };
            Finished::Queued(queue, outcome)
        });
    }

    fn run_aside(&mut self, message: AcceptedMessage, slash: &Slash) {
        let gateway = Arc::clone(&self.gateway);
        // Those end what runs or let it go on, so there is always room for them.
        if matches!(slash, Slash::Stop | Slash::Approve(_) | Slash::Deny(_)) {
            let control = TurnControl::below(&gateway.cut);
            self.working.spawn(async move {
                gateway.drive(&message, &control).await;
                Finished::Unlisted
            });
            return;
        }
        match self.queues.begin_aside() {
            Ok(control) => {
                self.working.spawn(async move {
                    gateway.drive(&message, &control).await;
                    Finished::Aside(control.stop)
                });
            }
            Err(notified) => gateway.not_heard(message, wording::QUEUE_FULL, notified),
        }
    }

    fn finish(&mut self, finished: Finished) {
        match finished {
            // What comes after it waits with it.
            Finished::Queued(_, Outcome::Deferred) => self.deferred = true,
            Finished::Queued(queue, Outcome::Ended) => {
                if let Some((message, control)) = self.queues.next(queue) {
                    let position = position(&self.gateway, &message);
                    self.start(queue, message, control, position);
                }
            }
            Finished::Aside(stop) => self.queues.end_aside(&stop),
            Finished::Unlisted => {}
        }
    }
}

/// What only ends things or tells about them needs no position.
fn position(gateway: &Gateway, message: &AcceptedMessage) -> Position {
    match gateway.slash(message) {
        Some(slash) if !slash.works() => Ok(None),
        _ => gateway.turn_limits.enqueue(message).map(Some),
    }
}
