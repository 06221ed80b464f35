//! What outlives a conversation.

use std::path::PathBuf;

use super::pick::SettingPicker;

#[derive(Clone, Debug)]
pub struct MemoryConfig {
    pub memory_enabled: bool,
    pub user_profile_enabled: bool,
    pub memory_char_limit: usize,
    pub user_char_limit: usize,
    /// Whether changes wait for a person.
    pub write_approval: bool,
    /// Whom Hermes' files of a single user are about, as `telegram:4711`.
    pub owner: Vec<String>,
    /// Skills that are not offered, by name.
    pub disabled_skills: Vec<String>,
    /// Folders of skills besides our own and Hermes'.
    pub skill_folders: Vec<PathBuf>,
}

impl MemoryConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        let folders = pick.texts("skills.external_dirs");
        Self {
            memory_enabled: pick.flag("memory.memory_enabled"),
            user_profile_enabled: pick.flag("memory.user_profile_enabled"),
            memory_char_limit: pick.count("memory.memory_char_limit"),
            user_char_limit: pick.count("memory.user_char_limit"),
            write_approval: pick.flag("memory.write_approval"),
            owner: pick.texts("memory.owner"),
            disabled_skills: pick.texts("skills.disabled"),
            skill_folders: folders.iter().map(|text| pick.path_of(text)).collect(),
        }
    }
}
