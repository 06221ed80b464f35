//! A handle on one turn or command at work: how it is interrupted, and what is said into it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_agent::SteeringHandle;
use hermetic_types::MessageId;
use tokio_util::sync::CancellationToken;

use super::turn_limits::{QueuedTurn, TurnPermit};
use crate::message::AcceptedMessage;

/// Clones are handles on the same turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnControl {
    pub(crate) stop: CancellationToken,
    pub(crate) steer: SteeringHandle,
    steering: Arc<Mutex<SteeringMessages>>,
}

/// Messages that were said into a running turn instead of getting one of their own.
#[derive(Debug, Default)]
struct SteeringMessages {
    heard: Vec<AcceptedMessage>,
    unheard: VecDeque<AcceptedMessage>,
    /// They answered a question of the turn, and the history does not have their words yet.
    answers: Vec<AcceptedMessage>,
}

impl TurnControl {
    /// A handle that `cut`, the end of everything, ends too.
    pub(crate) fn below(cut: &CancellationToken) -> Self {
        Self {
            stop: cut.child_token(),
            steer: SteeringHandle::default(),
            steering: Arc::default(),
        }
    }

    /// The permit at the end of the queue. There is none for work that needs none or is stopped before.
    pub(crate) async fn wait_for(&self, queued: Option<QueuedTurn>) -> Option<TurnPermit> {
        // Stopped while it waits, it is driven all the same: somebody has to write its end, and
        // whatever it would run finds the token cancelled.
        self.stop.run_until_cancelled(queued?.permit()).await
    }

    /// Says a message into the turn. `false` if the turn takes no more.
    pub(crate) fn steer_with(&self, message: &AcceptedMessage) -> bool {
        // Held over both: a turn that takes the words in between would not find whose they are.
        let mut steering = self.steering();
        if self.stop.is_cancelled() || !self.steer.say(message.for_model()) {
            return false;
        }
        steering.unheard.push_back(message.clone());
        true
    }

    /// The model is told what the next of them said.
    pub(crate) fn next_steering_heard(&self) -> Option<AcceptedMessage> {
        let mut steering = self.steering();
        let message = steering.unheard.pop_front()?;
        steering.heard.push(message.clone());
        Some(message)
    }

    pub(crate) fn take_heard(&self) -> Vec<AcceptedMessage> {
        std::mem::take(&mut self.steering().heard)
    }

    pub(crate) fn take_unheard(&self) -> VecDeque<AcceptedMessage> {
        std::mem::take(&mut self.steering().unheard)
    }

    /// A message answers what the turn asked. It is ended when the turn has written the answer down: until then
    /// the message is the only copy that a crash leaves.
    pub(crate) fn note_answer(&self, message: &AcceptedMessage) {
        self.steering().answers.push(message.clone());
    }

    /// It does not after all: nobody waits for it any more.
    pub(crate) fn forget_answer(&self, message: &AcceptedMessage) {
        let is_other = |one: &AcceptedMessage| one.row() != message.row();
        self.steering().answers.retain(is_other);
    }

    pub(crate) fn take_answers(&self) -> Vec<AcceptedMessage> {
        std::mem::take(&mut self.steering().answers)
    }

    /// What was said into the turn and not told to the model, if this is it.
    pub(crate) fn find_unheard(&self, message: &MessageId) -> Option<AcceptedMessage> {
        let steering = self.steering();
        let mut unheard = steering.unheard.iter();
        unheard.find(|one| one.is_written_as(message)).cloned()
    }

    /// Takes back what was said into the turn, if the model has not been told.
    pub(crate) fn take_back(&self, message: &MessageId) -> Option<AcceptedMessage> {
        let mut steering = self.steering();
        let is_it = |unheard: &AcceptedMessage| unheard.is_written_as(message);
        let place = steering.unheard.iter().position(is_it)?;
        // Words and messages stand in the same order, but the turn may have taken the first words.
        self.steer.take_back(steering.unheard.len() - 1 - place)?;
        steering.unheard.remove(place)
    }

    fn steering(&self) -> MutexGuard<'_, SteeringMessages> {
        self.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
