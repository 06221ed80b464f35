//! Skills: texts that say how something is done, which a person put there or approved.
//!
//! They lie in Hermes' `skills/` folder, which is only read, and in ours, where what an agent wrote comes to
//! after a person approved it. An agent's own text is no skill before: later turns obey a skill.

mod catalog;
mod draft;
mod front_matter;
mod skill_folder;

pub use catalog::{SkillCatalog, SkillFiles, SkillSettings, SkillSummary, command_name};
pub use draft::{DraftError, DraftedFile, SkillDraft, SkillDrafts};
