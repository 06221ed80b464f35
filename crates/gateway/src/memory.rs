//! What outlives a conversation, and whose it is.
//!
//! In private, a person has memories and looks back at what they said themselves. In a group, whatever is
//! remembered or found can be read by everybody there, so it has memories of its own and finds only what was
//! said in it.

mod commands;
mod frozen_prompts;
mod keyboard;
mod personal_tools;
mod scope;
mod session_search;
mod workspace_notes;

use std::path::PathBuf;

use hermetic_approvals::ApprovalRegistry;
use hermetic_memory::{Memories, SkillCatalog, SkillDrafts};
use hermetic_redact::Redactor;
use hermetic_store::Store;
use hermetic_types::SharedClock;

use frozen_prompts::FrozenPrompts;

pub use keyboard::KeyboardMemory;
pub use personal_tools::PersonalTools;
pub use scope::OwnerRule;
pub use workspace_notes::notes_in;

/// The parts that memory is made of. The binary builds them from the configuration.
#[derive(Debug)]
pub struct PersonalMemory {
    memories: Memories,
    skills: SkillCatalog,
    drafts: SkillDrafts,
    /// The file that says who the agent is.
    character: PathBuf,
    owner: OwnerRule,
    frozen: FrozenPrompts,
}

/// The same with whatever else its tools and commands need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryParts<'a> {
    pub(crate) memory: &'a PersonalMemory,
    pub(crate) store: &'a Store,
    pub(crate) redactor: &'a Redactor,
    pub(crate) questions: &'a ApprovalRegistry,
    pub(crate) clock: &'a SharedClock,
}

impl PersonalMemory {
    pub fn new(
        memories: Memories,
        (skills, drafts): (SkillCatalog, SkillDrafts),
        character: PathBuf,
        owner: OwnerRule,
    ) -> Self {
        Self {
            memories,
            skills,
            drafts,
            character,
            owner,
            frozen: FrozenPrompts::default(),
        }
    }

    pub(crate) fn skills(&self) -> &SkillCatalog {
        &self.skills
    }

    /// The first of these names that no skill has.
    pub(crate) async fn missing_skill(&self, names: &[String]) -> Option<String> {
        if names.is_empty() {
            return None;
        }
        let (skills, names) = (self.skills.clone(), names.to_vec());
        // Folders are read aside.
        let looked = tokio::task::spawn_blocking(move || {
            let known = skills.all();
            let is_there = |name: &String| known.iter().any(|skill| skill.name == *name);
            names.into_iter().find(|name| !is_there(name))
        });
        looked.await.ok().flatten()
    }
}
