//! What outlives a conversation: memories of each person, skills, the agent's character.
//!
//! The files are those of Hermes (`SOUL.md`, `memories/`, `skills/`), which are only read. What is written
//! goes into our store, under an owner: [`MemoryOwner`] is decided by whoever lets people in, and nothing here
//! reads or writes without one. All of it is text that later turns are shown, so it is bounded and scanned
//! ([`scan`]) on the way in and once more on the way out.

#![forbid(unsafe_code)]

mod character;
mod entries;
mod memories;
mod operations;
mod owner;
mod project_notes;
mod query;
pub mod scan;
mod skills;
mod small_file;

pub use character::Character;
pub use entries::{ENTRY_SEPARATOR, MemoryEntries};
pub use memories::{Memories, MemoryError, MemorySettings, MemorySnapshot, MemoryTargetSettings};
pub use operations::{BadOperation, MemoryChange, MemoryOperation};
pub use owner::{MemoryOwner, MemoryTarget};
pub use project_notes::ProjectNotes;
pub use query::LookBackQuery;
pub use skills::{
    DraftError, DraftedFile, SkillCatalog, SkillDraft, SkillDrafts, SkillFiles, SkillSettings,
    SkillSummary, command_name,
};
