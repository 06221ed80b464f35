//! The agents that live at the moment, one for each conversation at most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::{ConversationKey, SandboxId};

use crate::program::AgentProgram;
use crate::session::AgentSession;

/// Agents that wait for the next turn of their conversation. Clones share one state.
///
/// An agent lives in the sandbox of its conversation and goes with it: nothing here keeps a sandbox from
/// being let go. So there are never more of them than sandboxes.
#[derive(Clone, Debug, Default)]
pub struct RunningAgents(Arc<Mutex<HashMap<ConversationKey, RunningAgent>>>);

/// An agent that waits, and what it was started with.
#[derive(Debug)]
pub(crate) struct RunningAgent {
    pub(crate) session: AgentSession,
    pub(crate) program: AgentProgram,
    pub(crate) sandbox: SandboxId,
}

impl RunningAgents {
    /// Ends the conversation's agent.
    pub fn end(&self, conversation: &ConversationKey) {
        let ended = self.lock().remove(conversation);
        drop(ended);
    }

    /// The conversation's agent, if it lives in this sandbox and is still what is wanted. Any other of the
    /// conversation is ended.
    pub(crate) fn take(
        &self,
        conversation: &ConversationKey,
        program: &AgentProgram,
        sandbox: &SandboxId,
    ) -> Option<RunningAgent> {
        let mut agents = self.lock();
        // Here, because nobody tells this map that a program ended: those of conversations that are
        // silent would stay.
        agents.retain(|_, agent| agent.session.is_alive());
        let found = agents.remove(conversation)?;
        drop(agents);
        // Taken out in any case. Another program, or the same with other settings, or one in a
        // sandbox that is gone, ends by being dropped here.
        (found.program == *program && found.sandbox == *sandbox).then_some(found)
    }

    pub(crate) fn put_back(&self, conversation: &ConversationKey, agent: RunningAgent) {
        if agent.session.is_alive() {
            self.lock().insert(conversation.clone(), agent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, RunningAgent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
