//! What waits and what runs in one conversation: plain data that its task alone holds.
//!
//! There are two queues. Turns of the model run one after the other, and so do commands that run in the
//! sandbox without it; a command does not wait for a turn. What only tells or looks waits for nobody.

use std::collections::VecDeque;

use hermetic_types::MessageId;
use tokio_util::sync::CancellationToken;

use super::{Notified, TurnControl};
use crate::Busy;
use crate::message::AcceptedMessage;

/// As many as Hermes lets wait.
pub(super) const MOST_WAITING: usize = 32;

/// Commands at once that wait for nobody.
const MOST_ASIDES: usize = 8;

#[derive(Debug)]
pub(super) struct ConversationQueues {
    /// The end of everything; what is handed out ends with it.
    cut: CancellationToken,
    turns: WorkQueue,
    commands: WorkQueue,
    asides: Vec<CancellationToken>,
    /// Somebody was told that no more can wait.
    told_full: bool,
}

/// One thing at work, and those that wait for its end.
#[derive(Debug, Default)]
struct WorkQueue {
    at_work: Option<AtWork>,
    waiting: VecDeque<AcceptedMessage>,
}

#[derive(Debug)]
struct AtWork {
    message: MessageId,
    control: TurnControl,
}

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Turns,
    Commands,
}

#[derive(Debug)]
pub(super) enum Enqueued {
    /// Nothing was before it: whoever asked starts it now.
    Starts(Box<AcceptedMessage>, TurnControl),
    Waits,
    /// It was said into the running turn.
    Steers,
    /// No more can wait. Whoever sends on and on is told once.
    Full(Box<AcceptedMessage>, Notified),
}

/// What an interruption met.
#[derive(Debug, Default)]
pub(crate) struct Interrupted {
    pub(crate) anything: bool,
    /// Commands whose turn had not come. They do not run.
    pub(crate) dropped: Vec<AcceptedMessage>,
}

impl ConversationQueues {
    pub(super) fn new(cut: CancellationToken) -> Self {
        Self {
            cut,
            turns: WorkQueue::default(),
            commands: WorkQueue::default(),
            asides: Vec::new(),
            told_full: false,
        }
    }

    pub(super) fn enqueue_turn(&mut self, message: AcceptedMessage, busy: Busy) -> Enqueued {
        if let Some(turn) = self.turns.running() {
            // What came along with it has to be fetched first, so it gets a turn of its own.
            let words_only = message.said().attachments.is_empty();
            let steers = busy == Busy::Steer && words_only && self.turns.waiting.is_empty();
            if steers && turn.steer_with(&message) {
                return Enqueued::Steers;
            }
        }
        let enqueued = self.enqueue(Queue::Turns, message);
        if let (Enqueued::Waits, Busy::Interrupt, Some(turn)) =
            (&enqueued, busy, self.turns.running())
        {
            turn.stop.cancel();
        }
        enqueued
    }

    /// A command joins the others. Each runs when those before it have ended.
    pub(super) fn enqueue_command(&mut self, message: AcceptedMessage) -> Enqueued {
        self.enqueue(Queue::Commands, message)
    }

    /// Comes next, before all that wait, who are handed back; what runs is interrupted.
    pub(super) fn cut_in(&mut self, message: AcceptedMessage) -> (Enqueued, Vec<AcceptedMessage>) {
        let mut dropped = self.stop().dropped;
        let unheard = self.turns.running().map(TurnControl::take_unheard);
        dropped.extend(unheard.unwrap_or_default());
        dropped.extend(self.turns.waiting.drain(..));
        (self.enqueue_turn(message, Busy::Interrupt), dropped)
    }

    /// What was at work has ended: the next that waits, unless everything ends.
    pub(super) fn next(&mut self, queue: Queue) -> Option<(AcceptedMessage, TurnControl)> {
        let control = TurnControl::below(&self.cut);
        let everything_ends = self.cut.is_cancelled();
        let work = self.queue(queue);
        let ended = work.at_work.take();
        let unheard = ended.map(|ended| ended.control.take_unheard());
        for message in unheard.unwrap_or_default().into_iter().rev() {
            work.waiting.push_front(message);
        }
        if everything_ends {
            // What still waits is in the store, and the next start takes it up.
            work.waiting.clear();
        }
        let message = work.waiting.pop_front()?;
        work.begin(&message, &control);
        self.told_full = false;
        Some((message, control))
    }

    /// Something next to the queues, which a stop ends too; an error if there is enough of it.
    pub(super) fn begin_aside(&mut self) -> Result<TurnControl, Notified> {
        if self.asides.len() >= MOST_ASIDES {
            return Err(self.note_full());
        }
        let control = TurnControl::below(&self.cut);
        self.asides.push(control.stop.clone());
        Ok(control)
    }

    /// Asides whose handle was cancelled by their end are forgotten.
    pub(super) fn end_aside(&mut self, stop: &CancellationToken) {
        stop.cancel();
        self.asides.retain(|stop| !stop.is_cancelled());
        self.told_full = false;
    }

    /// Interrupts what runs, and hands back the commands that waited for it.
    pub(super) fn stop(&mut self) -> Interrupted {
        self.asides.iter().for_each(CancellationToken::cancel);
        for at_work in self.turns.at_work.iter().chain(&self.commands.at_work) {
            at_work.control.stop.cancel();
        }
        Interrupted {
            anything: !self.is_idle(),
            dropped: self.commands.waiting.drain(..).collect(),
        }
    }

    /// A message was deleted: it is taken out if it waits, and interrupted if it is at work. What was said
    /// into a running turn and not heard yet is taken back.
    pub(super) fn withdraw(&mut self, message: &MessageId) -> Option<AcceptedMessage> {
        [&mut self.turns, &mut self.commands]
            .into_iter()
            .find_map(|queue| queue.withdraw(message))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.turns.at_work.is_none() && self.commands.at_work.is_none() && self.asides.is_empty()
    }

    /// Whether a turn or a command runs.
    pub(super) fn is_at_work(&self) -> bool {
        self.turns.at_work.is_some() || self.commands.at_work.is_some()
    }

    pub(super) fn waiting(&self) -> usize {
        self.turns.waiting.len() + self.commands.waiting.len()
    }

    fn enqueue(&mut self, queue: Queue, message: AcceptedMessage) -> Enqueued {
        let control = TurnControl::below(&self.cut);
        let work = self.queue(queue);
        if work.at_work.is_none() {
            work.begin(&message, &control);
            return Enqueued::Starts(Box::new(message), control);
        }
        if work.waiting.len() >= MOST_WAITING {
            return Enqueued::Full(Box::new(message), self.note_full());
        }
        work.waiting.push_back(message);
        Enqueued::Waits
    }

    fn queue(&mut self, queue: Queue) -> &mut WorkQueue {
        match queue {
            Queue::Turns => &mut self.turns,
            Queue::Commands => &mut self.commands,
        }
    }

    fn note_full(&mut self) -> Notified {
        match std::mem::replace(&mut self.told_full, true) {
            true => Notified::Already,
            false => Notified::Now,
        }
    }
}

impl WorkQueue {
    fn begin(&mut self, message: &AcceptedMessage, control: &TurnControl) {
        self.at_work = Some(AtWork {
            message: message.said().message.clone(),
            control: control.clone(),
        });
    }

    fn running(&self) -> Option<&TurnControl> {
        self.at_work.as_ref().map(|at_work| &at_work.control)
    }

    fn withdraw(&mut self, message: &MessageId) -> Option<AcceptedMessage> {
        let is_it = |waiting: &AcceptedMessage| waiting.said().message == *message;
        if let Some(at_work) = &self.at_work {
            if at_work.message == *message {
                at_work.control.stop.cancel();
                return None;
            }
            if let Some(unheard) = at_work.control.take_back(message) {
                return Some(unheard);
            }
        }
        let place = self.waiting.iter().position(is_it)?;
        self.waiting.remove(place)
    }
}

#[cfg(test)]
#[path = "queues_tests.rs"]
mod tests;
