//! What the system prompt tells of the place where commands run.

use hermetic_agent::prompt;
use hermetic_config::Config;
use hermetic_sandbox::{MountMode, Persistence};
use hermetic_session::Plan;
use hermetic_types::{BackendKind, Boundary};

use super::{boundary, terminal};

pub(super) fn facts(config: &Config, plan: &Plan) -> prompt::Facts {
    let boundary = boundary(plan.backend);
    let sealed = boundary == Boundary::Sealed;
    prompt::Facts {
        backend: plan.backend,
        boundary,
        network: if sealed {
            prompt::Network::Closed
        } else {
            prompt::Network::Open
        },
        workspace: terminal::workspace(config, plan.backend),
        shared: plan
            .mounts
            .iter()
            .filter(|_| plan.backend == BackendKind::Native)
            .map(|mount| prompt::Shared {
                path: mount.target.display().to_string(),
                writable: mount.mode == MountMode::ReadWrite,
            })
            .collect(),
        limits: sealed.then(|| plan.limits.clone()),
        persistence: match plan.persistence {
            Persistence::Ephemeral => prompt::Persistence::Ephemeral,
            Persistence::Kept => prompt::Persistence::Kept,
        },
        lifetime: Some(plan.lifetime),
        max_turns: config.agent().max_turns,
        chat: String::new(),
        files: false,
        instructions: config.agent().system_prompt.clone(),
    }
}
