//! What the system prompt tells of the place where commands run.

use std::path::{Component, Path, PathBuf};

use hermetic_agent::prompt;
use hermetic_config::Config;
use hermetic_sandbox::{MountMode, SandboxPersistence};
use hermetic_session::SandboxPlan;
use hermetic_types::{BackendKind, Boundary};

use super::{boundary, docker, terminal};

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
        tasks: None,
        instructions: config.agent().system_prompt.clone(),
        character: None,
        project_notes: sealed,
        remembered: Vec::new(),
    }
}

/// Whether the workspace, what it lies in or something in it comes from outside of the sandbox: then it is
/// not the conversation's alone.
pub(super) fn shares_workspace(config: &Config, plan: &SandboxPlan) -> bool {
    let workspace = terminal::workspace(config, plan.backend);
    let shown = plan.mounts.iter().map(|mount| mount.target.clone());
    let volumes = match plan.backend {
        BackendKind::Docker => docker::volume_targets(config),
        _ => Vec::new(),
    };
    let mut targets = shown.chain(volumes);
    targets.any(|target| overlaps(&target, Path::new(&workspace)))
}

/// By their names alone, however they are written.
fn overlaps(one: &Path, other: &Path) -> bool {
    let (one, other) = (plain(one), plain(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_the_workspace_or_in_it_or_around_it_overlaps_it() {
        let workspace = Path::new("/workspace");
        for target in [
            "/workspace",
            "/workspace/",
            "/workspace/data/x",
            "/data/../workspace",
            "//workspace/.",
        ] {
            assert!(overlaps(Path::new(target), workspace), "{target}");
        }
        for target in ["/shared", "/workspaces", "/workspace/../data"] {
            assert!(!overlaps(Path::new(target), workspace), "{target}");
        }
    }
}
