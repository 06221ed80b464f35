//! What a person says while the agent works.

use std::sync::{Arc, Mutex, PoisonError};

/// A handle to put words into a running turn. They reach the model after the tool calls it is at.
#[derive(Clone, Debug, Default)]
pub struct SteeringHandle(Arc<Mutex<Vec<String>>>);

/// More than this waits for the next turn.
const MOST_STEERING_MESSAGES: usize = 32;

impl SteeringHandle {
    /// Whether there was room for it.
    pub fn say(&self, text: impl Into<String>) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = waiting.len() < MOST_STEERING_MESSAGES;
        if room {
            waiting.push(text.into());
        }
        room
    }

    /// Takes back what was said, counted from the last one; `None` if the turn has taken it.
    pub fn take_back(&self, from_last: usize) -> Option<String> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.len().checked_sub(from_last + 1)?;
        Some(waiting.remove(place))
    }

    /// What was said since this was last asked.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
