//! What outlives a conversation, from the configuration.

use std::collections::BTreeSet;

use hermetic_config::Config;
use hermetic_gateway::{OwnerRule, PersonalMemory};
use hermetic_memory::{
    Character, Memories, MemorySettings, MemoryTargetSettings, SkillCatalog, SkillDrafts,
    SkillSettings,
};
use hermetic_redact::Redactor;
use hermetic_sandbox::{HostMount, MountMode};
use hermetic_store::Store;
use hermetic_types::{AccountId, BackendKind};
use tracing::warn;

use super::access;

/// Where a native sandbox sees Hermes' skills.
const IN_SANDBOX: &str = "/hermes-skills";

/// What is remembered, for the gateway and for the command line.
pub fn memories(config: &Config, store: &Store, redactor: &Redactor) -> Memories {
    let wanted = config.memory();
    let settings = MemorySettings {
        folder: config.home().root().join("memories"),
        memory: MemoryTargetSettings {
            enabled: wanted.memory_enabled,
            char_limit: wanted.memory_char_limit,
        },
        user: MemoryTargetSettings {
            enabled: wanted.user_profile_enabled,
            char_limit: wanted.user_char_limit,
        },
        write_approval: wanted.write_approval,
    };
    Memories::new(store.memories(), settings, redactor.clone())
}

/// The skills there are, and those that wait for a person.
pub fn skills(config: &Config, store: &Store, redactor: &Redactor) -> (SkillCatalog, SkillDrafts) {
    let catalog = catalog(config);
    let drafts = SkillDrafts::new(store.skill_drafts(), catalog.clone(), redactor.clone());
    (catalog, drafts)
}

fn catalog(config: &Config) -> SkillCatalog {
    let home = config.home();
    let mut others = vec![home.root().join("skills")];
    others.extend(config.memory().skill_folders.iter().cloned());
    SkillCatalog::new(SkillSettings {
        own: home.state().join("skills"),
        others,
        disabled: config.memory().disabled_skills.clone(),
    })
}

/// Who the agent is, where the operator wrote it down.
pub(crate) fn character(config: &Config) -> Option<String> {
    let character = Character::read(&config.home().root().join("SOUL.md"));
    character.map(|character| character.as_str().to_owned())
}

pub(crate) fn personal_memory(
    config: &Config,
    store: &Store,
    redactor: &Redactor,
) -> PersonalMemory {
    PersonalMemory::new(
        memories(config, store, redactor),
        skills(config, store, redactor),
        config.home().root().join("SOUL.md"),
        owner_rule(config),
    )
}

/// Who Hermes' files of a single user are about. Where the configuration leaves it open among several, nobody.
pub fn owner_rule(config: &Config) -> OwnerRule {
    let written = &config.memory().owner;
    if !written.is_empty() {
        let named = written.iter().filter_map(|entry| {
            let person = named_person(entry);
            if person.is_none() {
                warn!(
                    entry,
                    "memory.owner names nobody: an entry is <platform>:<id>, as in telegram:4711"
                );
            }
            person
        });
        return OwnerRule::Named(named.collect());
    }
    let approvers = access::approvers(config).into_iter();
    let people: BTreeSet<String> = approvers
        .map(|(account, user)| format!("{}:{user}", account.platform().name()))
        .collect();
    match people.len() {
        0 => OwnerRule::OnlyPaired,
        1 => OwnerRule::Named(people),
        _ => OwnerRule::Nobody,
    }
}

fn named_person(entry: &str) -> Option<String> {
    let (account, user) = entry.split_once(':')?;
    let platform = account.parse::<AccountId>().ok()?.platform();
    let user = access::named_on(platform, user)?;
    Some(format!("{}:{user}", platform.name()))
}

/// Hermes' skills as a native sandbox sees them: read-only. On other backends, and where a person approved them
/// here, they are read by the tools alone: nothing of our state is shown to a sandbox.
pub(crate) fn skill_mount(config: &Config, backend: BackendKind) -> Option<HostMount> {
    let source = config.home().root().join("skills");
    let is_shown = backend == BackendKind::Native && source.is_dir();
    is_shown.then(|| HostMount {
        source,
        target: IN_SANDBOX.into(),
        mode: MountMode::ReadOnly,
    })
}
