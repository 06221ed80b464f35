//! Somebody else's agents, from the configuration.

use hermetic_agent_programs::{AgentFolder, InstalledPrograms, ProgramBackend};
use hermetic_config::Config;
use hermetic_types::{BackendKind, Boundary};

use crate::{boundary, docker};

/// Where installed agents lie.
pub fn agent_folder(config: &Config) -> AgentFolder {
    AgentFolder::in_state(&config.home().state())
}

/// The agents that can be chosen by name.
pub fn agent_programs(config: &Config) -> InstalledPrograms {
    InstalledPrograms::new(
        agent_folder(config),
        config.provider_keys().clone(),
        program_backend,
    )
}

/// Whether a sandbox of this backend can be shown the folder of an agent.
pub(crate) fn can_show(backend: BackendKind) -> bool {
    program_backend(backend) == ProgramBackend::Near
}

fn program_backend(backend: BackendKind) -> ProgramBackend {
    let unsealed = ProgramBackend::Far(format!(
        "the {backend} backend is no sandbox, and somebody else's agent runs in nothing less; set \
         gateway.terminal_backend: native"
    ));
    match backend {
        _ if boundary(backend) == Boundary::Judged => unsealed,
        // The instances of Singularity are on this machine, and its cage puts folders into them as natively.
        BackendKind::Native | BackendKind::Singularity => ProgramBackend::Near,
        BackendKind::Docker if docker::is_near() => ProgramBackend::Near,
        // The engine, the node or the cloud has no folder of this machine: each sandbox is given a copy
        // once.
        BackendKind::Docker
        | BackendKind::Kubernetes
        | BackendKind::Modal
        | BackendKind::Daytona => ProgramBackend::Copied,
        BackendKind::Local | BackendKind::Ssh => unsealed,
    }
}
