//! What each backend says of itself, for those who ask before one is opened.

use hermetic_daytona::DaytonaBackend;
use hermetic_docker::DockerBackend;
use hermetic_local::LocalBackend;
use hermetic_modal::ModalBackend;
use hermetic_native::NativeBackend;
use hermetic_singularity::SingularityBackend;
use hermetic_ssh::SshBackend;
use hermetic_types::{BackendDescription, BackendKind, Boundary};

/// The backend's own words: this only looks them up.
pub fn description(kind: BackendKind) -> BackendDescription {
    match kind {
        BackendKind::Native => NativeBackend::DESCRIPTION,
        BackendKind::Docker => DockerBackend::DESCRIPTION,
        BackendKind::Singularity => SingularityBackend::DESCRIPTION,
        BackendKind::Ssh => SshBackend::DESCRIPTION,
        BackendKind::Modal => ModalBackend::DESCRIPTION,
        BackendKind::Daytona => DaytonaBackend::DESCRIPTION,
        // Also said by a build without it, so that a ledger that names it can be read.
        BackendKind::Kubernetes => BackendDescription::sealed(kind),
        BackendKind::Local => LocalBackend::DESCRIPTION,
    }
}

/// Whether leaving such a sandbox takes more than a command.
pub fn boundary(kind: BackendKind) -> Boundary {
    description(kind).boundary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_backend_is_looked_up_by_its_own_name() {
        for kind in BackendKind::ALL {
            assert_eq!(description(kind).kind, kind);
        }
    }

    #[test]
    fn commands_on_somebodys_machine_are_judged() {
        let judged = BackendKind::ALL.into_iter();
        let judged: Vec<_> = judged
            .filter(|kind| boundary(*kind) == Boundary::Judged)
            .collect();
        assert_eq!(judged, [BackendKind::Ssh, BackendKind::Local]);
    }
}
