//! What the system prompt tells of the place where commands run.

use hermetic_agent::prompt;
use hermetic_config::Config;
use hermetic_sandbox::{MountMode, SandboxPersistence};
use hermetic_session::SandboxPlan;
use hermetic_types::{BackendKind, Boundary};

use super::{boundary, terminal};

pub(super) fn facts(config: &Config, plan: &SandboxPlan) -> prompt::PromptFacts {
    let boundary = boundary(plan.backend);
    let sealed = boundary == Boundary::Sealed;
    prompt::PromptFacts {
        backend: plan.backend,
        boundary,
        network: if sealed {
            prompt::NetworkFacts::Closed
        } else {
            prompt::NetworkFacts::Open
        },
        workspace: terminal::workspace(config, plan.backend),
        shared: plan
            .mounts
            .iter()
            .filter(|_| plan.backend == BackendKind::Native)
            .map(|mount| prompt::SharedFolder {
                path: mount.target.display().to_string(),
                writable: mount.mode == MountMode::ReadWrite,
            })
            .collect(),
        limits: sealed.then(|| plan.limits.clone()),
        persistence: match plan.persistence {
            SandboxPersistence::Ephemeral => prompt::PersistenceFacts::Ephemeral,
            SandboxPersistence::Kept => prompt::PersistenceFacts::Kept,
        },
        lifetime: Some(plan.lifetime),
        max_turns: config.agent().max_turns,
        chat: String::new(),
        files: false,
        instructions: config.agent().system_prompt.clone(),
    }
}
