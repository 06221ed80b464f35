//! What a person says while the agent works.

use std::sync::{Arc, Mutex, PoisonError};

/// A handle to put words into a running turn. They reach the model after the tool calls it is at.
#[derive(Clone, Debug, Default)]
pub struct Steer(Arc<Mutex<Vec<String>>>);

/// More than this waits for the next turn.
const MOST: usize = 32;

impl Steer {
    /// Whether there was room for it.
    pub fn say(&self, text: impl Into<String>) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = waiting.len() < MOST;
        if room {
            waiting.push(text.into());
        }
        room
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
