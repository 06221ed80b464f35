//! What waits and what runs in one conversation: plain data that its task alone holds.
//!
//! There are two queues. Turns of the model run one after the other, and so do commands that run in the
//! sandbox without it; a command does not wait for a turn. What only tells or looks waits for nobody.

use std::collections::VecDeque;

use hermetic_access::Admitted;
use hermetic_types::{MessageId, UserId};
use tokio_util::sync::CancellationToken;

use super::{Notified, TurnControl};
use crate::BusyMode;
use crate::message::AcceptedMessage;

/// As many as Hermes lets wait.
pub(super) const MOST_WAITING_MESSAGES: usize = 32;

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
    /// Whether only the person of a turn says something into it: it is paid for by that one.
    steered_by_sender_only: bool,
}

/// One thing at work, and those that wait for its end.
#[derive(Debug, Default)]
struct WorkQueue {
    at_work: Option<AtWork>,
    waiting: VecDeque<AcceptedMessage>,
}

#[derive(Debug)]
struct AtWork {
    message: AcceptedMessage,
    control: TurnControl,
}

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueKind {
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

/// What became of an edit.
#[derive(Debug)]
pub(crate) enum EditOutcome {
    /// The message has the new words, and they are to be written down.
    Replaced(Box<AcceptedMessage>),
    /// It is being answered.
    AtWork,
    /// It is over, or says the same as before.
    TooLate,
}

/// What an edit met in the queues.
#[derive(Debug)]
pub(super) enum Edited {
    /// The message has the new words, where it stood.
    InPlace(AcceptedMessage),
    /// It was taken out, because it is to be sorted anew.
    TakenOut(AcceptedMessage),
    AtWork,
    TooLate,
}

/// What an interruption met.
#[derive(Debug, Default)]
pub(crate) struct InterruptionReport {
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
            steered_by_sender_only: false,
        }
    }

    /// With turns that take words only from whoever they are counted for.
    pub(super) fn steered_by_sender_only(mut self, only: bool) -> Self {
        self.steered_by_sender_only = only;
        self
    }

    pub(super) fn enqueue_turn(&mut self, message: AcceptedMessage, busy: BusyMode) -> Enqueued {
        if let Some(turn) = self.turns.running() {
            // What came along with it has to be fetched first, so it gets a turn of its own.
            let words_only = message.said().attachments.is_empty();
            let steers = busy == BusyMode::Steer
                && words_only
                // Behind messages that wait it waits too: said into the turn it would overtake
                // them.
                && self.turns.waiting.is_empty()
                && (!self.steered_by_sender_only || self.turns.is_of_sender(&message));
            if steers && turn.steer_with(&message) {
                return Enqueued::Steers;
            }
        }
        let enqueued = self.enqueue(QueueKind::Turns, message);
        // Only for a message that found room: one that is turned away must not cost the turn that
        // runs.
        if let (Enqueued::Waits, BusyMode::Interrupt, Some(turn)) =
            (&enqueued, busy, self.turns.running())
        {
            turn.stop.cancel();
        }
        enqueued
    }

    /// A command joins the others. Each runs when those before it have ended.
    pub(super) fn enqueue_command(&mut self, message: AcceptedMessage) -> Enqueued {
        self.enqueue(QueueKind::Commands, message)
    }

    /// Comes next, before all that wait, who are handed back; what runs is interrupted.
    pub(super) fn cut_in(&mut self, message: AcceptedMessage) -> (Enqueued, Vec<AcceptedMessage>) {
        let mut dropped = self.stop().dropped;
        // What was said into the turn and not told to the model belongs to what goes: left there,
        // `next` would hand it to the conversation that begins.
        let unheard = self.turns.running().map(TurnControl::take_unheard);
        dropped.extend(unheard.unwrap_or_default());
        dropped.extend(self.turns.waiting.drain(..));
        (self.enqueue_turn(message, BusyMode::Interrupt), dropped)
    }

    /// What was at work has ended: the next that waits, unless everything ends.
    pub(super) fn next(&mut self, queue: QueueKind) -> Option<(AcceptedMessage, TurnControl)> {
        let control = TurnControl::below(&self.cut);
        let everything_ends = self.cut.is_cancelled();
        let work = self.queue(queue);
        let ended = work.at_work.take();
        let unheard = ended.map(|ended| ended.control.take_unheard());
        // Said before all that wait, so they come before those, and from the back, which keeps
        // their own order.
        for message in unheard.unwrap_or_default().into_iter().rev() {
            work.waiting.push_front(message);
        }
        if everything_ends {
            // What still waits is in the store, and the next start takes it up.
            work.waiting.clear();
        }
        let message = work.waiting.pop_front()?;
        work.begin(&message, &control);
        // There is room again: the next flood is worth a word of its own.
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
    pub(super) fn stop(&mut self) -> InterruptionReport {
        self.asides.iter().for_each(CancellationToken::cancel);
        for at_work in self.turns.at_work.iter().chain(&self.commands.at_work) {
            at_work.control.stop.cancel();
        }
        InterruptionReport {
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

    /// Whether this person's message waits here or is at work.
    pub(super) fn knows(&self, message: &MessageId, sender: &UserId) -> bool {
        let found = [&self.turns, &self.commands]
            .into_iter()
            .find_map(|queue| queue.find(message));
        found.is_some_and(|found| found.said().sender.id == *sender)
    }

    /// Somebody changed a message. A command, or what becomes one, is sorted anew: each kind has its own
    /// queue and its own rules.
    pub(super) fn edit(
        &mut self,
        edited: Admitted,
        is_command: impl Fn(&AcceptedMessage) -> bool,
    ) -> Edited {
        let (id, words) = (edited.said().message.clone(), edited.said().text.clone());
        let is_same = |found: &AcceptedMessage| found.said().text == words;
        let is_turn_at_work = self.turns.has_at_work(&id);
        let Some(queue) = [&mut self.turns, &mut self.commands]
            .into_iter()
            .find(|queue| queue.find(&id).is_some())
        else {
            return Edited::TooLate;
        };
        let Some(found) = queue.find(&id) else {
            return Edited::TooLate;
        };
        if is_same(&found) {
            // Told twice: the first time it may not have reached the disk.
            return match queue
                .waiting
                .iter()
                .any(|waiting| waiting.is_written_as(&id))
            {
                true => Edited::InPlace(found),
                false => Edited::TooLate,
            };
        }
        let changed = found.with_words_of(edited);
        if queue.has_at_work(&id) {
            // A turn can be told a correction. A command runs as it was written, and its output is
            // the answer to that.
            return match is_turn_at_work {
                true => Edited::AtWork,
                false => Edited::TooLate,
            };
        }
        let stays = !is_command(&found) && !is_command(&changed);
        let place = queue
            .waiting
            .iter()
            .position(|waiting| waiting.is_written_as(&id));
        if let Some(place) = place.filter(|_| stays) {
            queue.waiting[place] = changed.clone();
            return Edited::InPlace(changed);
        }
        match queue.withdraw(&id) {
            Some(_) => Edited::TakenOut(changed),
            // It was said into the turn, and the model has been told meanwhile.
            None => Edited::AtWork,
        }
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

    fn enqueue(&mut self, queue: QueueKind, message: AcceptedMessage) -> Enqueued {
        let control = TurnControl::below(&self.cut);
        let work = self.queue(queue);
        if work.at_work.is_none() {
            work.begin(&message, &control);
            return Enqueued::Starts(Box::new(message), control);
        }
        if work.waiting.len() >= MOST_WAITING_MESSAGES {
            return Enqueued::Full(Box::new(message), self.note_full());
        }
        work.waiting.push_back(message);
        Enqueued::Waits
    }

    fn queue(&mut self, queue: QueueKind) -> &mut WorkQueue {
        match queue {
            QueueKind::Turns => &mut self.turns,
            QueueKind::Commands => &mut self.commands,
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
            message: message.clone(),
            control: control.clone(),
        });
    }

    fn running(&self) -> Option<&TurnControl> {
        self.at_work.as_ref().map(|at_work| &at_work.control)
    }

    fn is_of_sender(&self, message: &AcceptedMessage) -> bool {
        let at_work = self.at_work.as_ref();
        at_work.is_some_and(|at_work| at_work.message.said().sender.id == message.said().sender.id)
    }

    fn has_at_work(&self, message: &MessageId) -> bool {
        let at_work = self.at_work.as_ref();
        at_work.is_some_and(|at_work| at_work.message.is_written_as(message))
    }

    /// At work, said into what is at work, or waiting.
    fn find(&self, message: &MessageId) -> Option<AcceptedMessage> {
        if let Some(at_work) = self.at_work.as_ref().filter(|_| self.has_at_work(message)) {
            return Some(at_work.message.clone());
        }
        let unheard = self.running().and_then(|turn| turn.find_unheard(message));
        let waiting = || {
            let mut waiting = self.waiting.iter();
            waiting
                .find(|waiting| waiting.is_written_as(message))
                .cloned()
        };
        unheard.or_else(waiting)
    }

    fn withdraw(&mut self, message: &MessageId) -> Option<AcceptedMessage> {
        let is_it = |waiting: &AcceptedMessage| waiting.is_written_as(message);
        if let Some(at_work) = &self.at_work {
            if at_work.message.is_written_as(message) {
                // Not handed back: whoever drives it writes its end, and two ends of one message
                // would be one too many.
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
