//! Somebody else's agents, from the configuration.

use hermetic_agent_programs::{AgentFolder, InstalledPrograms, ProgramBackend};
use hermetic_config::Config;
use hermetic_types::{BackendKind, Boundary};

use crate::{boundary, docker};

/// Where installed agents lie.
pub fn agent_folder(config: &Config) -> AgentFolder {
    AgentFolder::in_state(&config.home().state())
}

/// The agents that can be chosen by name, as conversations on this backend can use them.
pub fn agent_programs(config: &Config, backend: BackendKind) -> InstalledPrograms {
    InstalledPrograms::new(
        agent_folder(config),
        config.provider_keys().clone(),
        program_backend(backend),
    )
}

/// Whether a sandbox of this backend can be shown the folder of an agent.
pub(crate) fn can_show(backend: BackendKind) -> bool {
    program_backend(backend) == ProgramBackend::Near
}

fn program_backend(backend: BackendKind) -> ProgramBackend {
    let far = |whose: &str| {
        ProgramBackend::Far(format!(
            "sandboxes of {backend} are on {whose}, and an installed agent is not copied there; use the native, \
             docker or singularity backend for it (gateway.terminal_backend)"
        ))
    };
    match backend {
        _ if boundary(backend) == Boundary::Judged => ProgramBackend::Far(format!(
            "the {backend} backend is no sandbox, and somebody else's agent runs in nothing less; set \
             gateway.terminal_backend: native"
        )),
        // The instances of Singularity are on this machine, and its cage puts folders into them as natively.
        BackendKind::Native | BackendKind::Singularity => ProgramBackend::Near,
        BackendKind::Docker if docker::is_near() => ProgramBackend::Near,
        // The engine, or the node, has no folder of this machine: each sandbox is given a copy once.
        BackendKind::Docker | BackendKind::Kubernetes => ProgramBackend::Copied,
        BackendKind::Modal => far("machines of Modal"),
        BackendKind::Daytona => far("machines of Daytona"),
        BackendKind::Local | BackendKind::Ssh => far("another machine"),
    }
}
