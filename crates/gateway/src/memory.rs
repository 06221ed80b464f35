//! What outlives a conversation, and whose it is.
//!
//! In private, a person has memories and looks back at what they said themselves. In a group, whatever is
//! remembered or found can be read by everybody there, so it has memories of its own and finds only what was
//! said in it.

mod commands;
mod frozen_prompts;
mod personal_tools;
mod scope;
mod session_search;

use std::path::PathBuf;

use hermetic_memory::{Memories, SkillCatalog, SkillDrafts};

use frozen_prompts::FrozenPrompts;

pub(crate) use personal_tools::PersonalTools;
pub use scope::OwnerRule;

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
}
