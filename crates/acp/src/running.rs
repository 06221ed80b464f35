//! The agents that live at the moment, one for each conversation at most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::{ConversationKey, SandboxId};

use crate::bounds::MOST_REMEMBERED_OFFERS;
use crate::offers::SessionOffers;
use crate::program::AgentProgram;
use crate::session::AgentSession;

/// Agents that wait for the next turn of their conversation. Clones share one state.
///
/// An agent lives in the sandbox of its conversation and goes with it: nothing here keeps a sandbox from
/// being let go. So there are never more of them than sandboxes.
#[derive(Clone, Debug, Default)]
pub struct RunningAgents(Arc<Mutex<AgentsState>>);

#[derive(Debug, Default)]
struct AgentsState {
    waiting: HashMap<ConversationKey, RunningAgent>,
    /// The agent that was last heard in a conversation, and what it offers there.
    offers: HashMap<ConversationKey, (String, SessionOffers)>,
}

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
        let ended = self.lock().waiting.remove(conversation);
        drop(ended);
    }

    /// What this agent offers in the conversation, where it has said so since the gateway started.
    pub fn offers(&self, conversation: &ConversationKey, agent: &str) -> Option<SessionOffers> {
        let state = self.lock();
        let (of, offers) = state.offers.get(conversation)?;
        (of == agent).then(|| offers.clone())
    }

    pub(crate) fn note_offers(&self, conversation: &ConversationKey, session: &AgentSession) {
        // Nothing is said of it by some that load a session, which is no reason to forget it.
        if session.offers.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.offers.len() >= MOST_REMEMBERED_OFFERS {
            let AgentsState { waiting, offers } = &mut *state;
            offers.retain(|conversation, _| waiting.contains_key(conversation));
        }
        let offers = (session.agent.clone(), session.offers.clone());
        state.offers.insert(conversation.clone(), offers);
    }

    /// The conversation's agent, if it lives in this sandbox and is still what is wanted. Any other of the
    /// conversation is ended.
    pub(crate) fn take(
        &self,
        conversation: &ConversationKey,
        program: &AgentProgram,
        sandbox: &SandboxId,
    ) -> Option<RunningAgent> {
        let mut state = self.lock();
        // Here, because nobody tells this map that a program ended: those of conversations that are
        // silent would stay.
        state.waiting.retain(|_, agent| agent.session.is_alive());
        let found = state.waiting.remove(conversation)?;
        drop(state);
        // Taken out in any case. Another program, or the same with other settings, or one in a
        // sandbox that is gone, ends by being dropped here.
        (found.program == *program && found.sandbox == *sandbox).then_some(found)
    }

    pub(crate) fn put_back(&self, conversation: &ConversationKey, agent: RunningAgent) {
        self.note_offers(conversation, &agent.session);
        if agent.session.is_alive() {
            self.lock().waiting.insert(conversation.clone(), agent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AgentsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
