//! The same at a keyboard.
//!
//! Whoever sits at the machine's own keyboard holds the home with Hermes' files in it, and can read and change
//! all that is remembered by `hermetic memory`. So it is the owner's memories that are shown there. What was
//! said in chats is not looked through: only sessions that have a name and were typed here.

use hermetic_approvals::ApprovalRegistry;
use hermetic_memory::MemoryOwner;
use hermetic_redact::Redactor;
use hermetic_store::{SearchScope, Store, StoreError};
use hermetic_types::{ConversationKey, SharedClock};
use tokio::sync::Mutex;

use super::frozen_prompts::FrozenPrompt;
use super::scope::MemoryScope;
use super::{MemoryParts, PersonalMemory, PersonalTools};

/// Memories, skills and looking back for one conversation at a keyboard.
#[derive(Debug)]
pub struct KeyboardMemory {
    memory: PersonalMemory,
    store: Store,
    redactor: Redactor,
    questions: ApprovalRegistry,
    clock: SharedClock,
    conversation: ConversationKey,
    /// Whether the conversation has a name and is found again.
    is_kept: bool,
    frozen: Mutex<Option<FrozenPrompt>>,
}

/// Whose sessions those at the keyboard are. No platform has this name.
const PERSON: &str = "cli:keyboard";

impl KeyboardMemory {
    pub fn new(
        memory: PersonalMemory,
        store: Store,
        (questions, redactor): (ApprovalRegistry, Redactor),
        (conversation, is_kept): (ConversationKey, bool),
        clock: SharedClock,
    ) -> Self {
        Self {
            memory,
            store,
            redactor,
            questions,
            clock,
            conversation,
            is_kept,
            frozen: Mutex::default(),
        }
    }

    /// Who the agent is, and the paragraphs about skills and memories. They stay the same while a conversation
    /// lasts; `begins` where nothing was said in it yet.
    pub async fn prompt(&self, begins: bool) -> Result<(Option<String>, Vec<String>), StoreError> {
        let mut frozen = self.frozen.lock().await;
        let prompt = match &*frozen {
            Some(kept) if !begins && kept.holds(&self.memory).await? => kept.clone(),
            _ => {
                if self.is_kept {
                    let rows = self.store.look_back();
                    rows.note(&self.conversation, PERSON).await?;
                }
                let taken = self.memory.take_prompt(&MemoryOwner::Owner).await?;
                frozen.insert(taken).clone()
            }
        };
        Ok((prompt.character, prompt.paragraphs))
    }

    pub fn tools(&self) -> PersonalTools<'_> {
        PersonalTools::new(self.parts(), self.scope(), "the keyboard".to_owned())
    }

    /// What `/memory` does and says.
    pub async fn obey(&self, words: &str) -> Result<Redacted, StoreError> {
        let said = (words, "a command at the keyboard");
        self.parts().obey(&self.scope(), true, said).await
    }

    /// What `/skills` says.
    pub async fn skills(&self) -> Redacted {
        self.parts().listed_skills().await
    }

    /// What the model is told where this calls a skill; nothing where it does not.
    pub async fn called_skill(&self, said: &str) -> Option<String> {
        self.parts().called_skill(said).await
    }

    fn parts(&self) -> MemoryParts<'_> {
        MemoryParts {
            memory: &self.memory,
            store: &self.store,
            redactor: &self.redactor,
            questions: &self.questions,
            clock: &self.clock,
        }
    }

    fn scope(&self) -> MemoryScope {
        MemoryScope {
            owner: MemoryOwner::Owner,
            person: Some(PERSON.to_owned()),
            search: SearchScope {
                conversation: self.conversation.clone(),
                people: vec![PERSON.to_owned()],
            },
            is_guest: false,
        }
    }
}

type Redacted = hermetic_redact::Redacted<String>;
