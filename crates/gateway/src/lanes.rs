//! One turn at a time for each conversation, others in parallel.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_agent::Steer;
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::Busy;
use crate::kept::Kept;
use crate::seats::{Seat, Ticket};

/// As many as Hermes lets wait.
const MOST_WAITING: usize = 32;

/// Commands at once next to a turn.
const MOST_ASIDES: usize = 8;

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<ConversationKey, Lane>>,
    cut: CancellationToken,
}

/// What goes on in one conversation. It exists while something does.
#[derive(Debug, Default)]
struct Lane {
    turn: Option<Control>,
    waiting: VecDeque<Kept>,
    /// What runs in the sandbox without the model, next to the turn: one command after the other.
    command: Option<Control>,
    commands: VecDeque<Kept>,
    /// What only tells or looks, and waits for nobody.
    asides: Vec<CancellationToken>,
    /// Somebody was told that no more can wait.
    told_full: bool,
}

/// A handle on something at work.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) stop: CancellationToken,
    pub(crate) steer: Steer,
    riders: Arc<Mutex<Riders>>,
}

/// Messages that were put into a running turn instead of getting one of their own.
#[derive(Debug, Default)]
struct Riders {
    heard: Vec<Kept>,
    unheard: VecDeque<Kept>,
}

#[derive(Debug)]
pub(crate) enum Joined {
    /// The lane was free: whoever joined works on it now.
    Starts(Box<Kept>, Control),
    Waits,
    Rides,
    /// No more can wait. Whoever sends on and on is told once.
    Full(Box<Kept>, Told),
}

/// The two lines of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Turns,
    Commands,
}

/// What an interruption met.
#[derive(Debug, Default)]
pub(crate) struct Interrupted {
    pub(crate) anything: bool,
    /// Commands whose turn had not come. They do not run.
    pub(crate) dropped: Vec<Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Now,
    Before,
}

impl Lanes {
    pub(crate) fn new(cut: CancellationToken) -> Self {
        Self {
            lanes: Mutex::default(),
            cut,
        }
    }

    pub(crate) fn join(&self, message: Kept, busy: Busy) -> Joined {
        let mut lanes = self.lock();
        let lane = lanes.entry(message.conversation().clone()).or_default();
        let Some(turn) = &lane.turn else {
            let control = self.control();
            lane.turn = Some(control.clone());
            return Joined::Starts(Box::new(message), control);
        };
        // What came along with it has to be fetched first, so it gets a turn of its own.
        let words_only = message.said().attachments.is_empty();
        if busy == Busy::Steer && words_only && lane.waiting.is_empty() && turn.take_along(&message)
        {
            return Joined::Rides;
        }
        if lane.waiting.len() >= MOST_WAITING {
            return Joined::Full(Box::new(message), lane.tell_full());
        }
        lane.waiting.push_back(message);
        if busy == Busy::Interrupt {
            turn.stop.cancel();
        }
        Joined::Waits
    }

    /// A command joins the others of its conversation. Each runs when those before it have ended.
    pub(crate) fn join_commands(&self, message: Kept) -> Joined {
        let mut lanes = self.lock();
        let lane = lanes.entry(message.conversation().clone()).or_default();
        if lane.command.is_none() {
            let control = self.control();
            lane.command = Some(control.clone());
            return Joined::Starts(Box::new(message), control);
        }
        if lane.commands.len() >= MOST_WAITING {
            return Joined::Full(Box::new(message), lane.tell_full());
        }
        lane.commands.push_back(message);
        Joined::Waits
    }

    /// Comes next, before all that wait, who are handed back; what runs is interrupted.
    pub(crate) fn cut_in(&self, message: Kept) -> (Joined, Vec<Kept>) {
        let mut dropped = self.stop(message.conversation()).dropped;
        {
            let mut lanes = self.lock();
            if let Some(lane) = lanes.get_mut(message.conversation()) {
                let unheard = lane.turn.as_ref().map(Control::take_unheard);
                dropped.extend(unheard.unwrap_or_default());
                dropped.extend(lane.waiting.drain(..));
            }
        }
        (self.join(message, Busy::Interrupt), dropped)
    }

    /// What was first has ended: the next that waits, unless we are asked to stop.
    pub(crate) fn next(
        &self,
        conversation: &ConversationKey,
        line: Line,
    ) -> Option<(Kept, Control)> {
        let mut lanes = self.lock();
        let lane = lanes.get_mut(conversation)?;
        let (at_work, waiting) = match line {
            Line::Turns => {
                let unheard = lane.turn.as_ref().map(Control::take_unheard);
                for message in unheard.unwrap_or_default().into_iter().rev() {
                    lane.waiting.push_front(message);
                }
                (&mut lane.turn, &mut lane.waiting)
            }
            Line::Commands => (&mut lane.command, &mut lane.commands),
        };
        *at_work = None;
        match waiting.pop_front().filter(|_| !self.cut.is_cancelled()) {
            Some(message) => {
                let control = self.control();
                *at_work = Some(control.clone());
                lane.told_full = false;
                Some((message, control))
            }
            None => {
                // What still waits is in the store, and the next start takes it up.
                waiting.clear();
                if lane.is_idle() {
                    lanes.remove(conversation);
                }
                None
            }
        }
    }

    /// Something next to the turn, which `/stop` ends too; an error if there is enough of it.
    pub(crate) fn aside(&self, conversation: &ConversationKey) -> Result<Control, Told> {
        let mut lanes = self.lock();
        let lane = lanes.entry(conversation.clone()).or_default();
        if lane.asides.len() >= MOST_ASIDES {
            return Err(lane.tell_full());
        }
        let control = self.control();
        lane.asides.push(control.stop.clone());
        Ok(control)
    }

    pub(crate) fn aside_ended(&self, conversation: &ConversationKey, control: &Control) {
        control.stop.cancel();
        let mut lanes = self.lock();
        if let Some(lane) = lanes.get_mut(conversation) {
            lane.asides.retain(|stop| !stop.is_cancelled());
            lane.told_full = false;
            if lane.is_idle() {
                lanes.remove(conversation);
            }
        }
    }

    /// Interrupts what runs in this conversation, and hands back the commands that waited for it.
    pub(crate) fn stop(&self, conversation: &ConversationKey) -> Interrupted {
        let mut lanes = self.lock();
        let Some(lane) = lanes.get_mut(conversation) else {
            return Interrupted::default();
        };
        lane.asides.iter().for_each(CancellationToken::cancel);
        for at_work in lane.turn.iter().chain(&lane.command) {
            at_work.stop.cancel();
        }
        Interrupted {
            anything: !lane.is_idle(),
            dropped: lane.commands.drain(..).collect(),
        }
    }

    /// Whether a turn or a command runs, and how many messages wait.
    pub(crate) fn state(&self, conversation: &ConversationKey) -> (bool, usize) {
        let lanes = self.lock();
        lanes.get(conversation).map_or((false, 0), |lane| {
            let at_work = lane.turn.is_some() || lane.command.is_some();
            (at_work, lane.waiting.len() + lane.commands.len())
        })
    }

    /// How many conversations have something going on.
    pub(crate) fn active(&self) -> usize {
        self.lock().len()
    }

    /// A handle on something that only the end of everything ends.
    pub(crate) fn control(&self) -> Control {
        Control {
            stop: self.cut.child_token(),
            steer: Steer::default(),
            riders: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.turn.is_none() && self.command.is_none() && self.asides.is_empty()
    }

    fn tell_full(&mut self) -> Told {
        match std::mem::replace(&mut self.told_full, true) {
            true => Told::Before,
            false => Told::Now,
        }
    }
}

impl Control {
    /// The seat at the end of the line; none for who needs none, or is stopped before.
    pub(crate) async fn wait_for(&self, ticket: Option<Ticket>) -> Option<Seat> {
        self.stop.run_until_cancelled(ticket?.seat()).await
    }

    fn take_along(&self, message: &Kept) -> bool {
        if self.stop.is_cancelled() || !self.steer.say(message.for_model()) {
            return false;
        }
        self.riders().unheard.push_back(message.clone());
        true
    }

    /// The model is told what the next rider said.
    pub(crate) fn next_rider_heard(&self) -> Option<Kept> {
        let mut riders = self.riders();
        let rider = riders.unheard.pop_front()?;
        riders.heard.push(rider.clone());
        Some(rider)
    }

    pub(crate) fn take_heard(&self) -> Vec<Kept> {
        std::mem::take(&mut self.riders().heard)
    }

    fn take_unheard(&self) -> VecDeque<Kept> {
        std::mem::take(&mut self.riders().unheard)
    }

    fn riders(&self) -> MutexGuard<'_, Riders> {
        self.riders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
