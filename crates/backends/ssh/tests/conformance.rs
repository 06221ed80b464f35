//! The ssh backend against the contract.

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use crate::lab::Lab;

hermetic_sandbox::conformance!(candidate());

fn candidate() -> Option<BackendCandidate> {
    let lab = Lab::open()?;
    let installation = InstallationId::random();
    Some(BackendCandidate {
        backend: lab.backend(&installation),
        other: lab.backend(&InstallationId::random()),
        installation,
        system: SystemView::Host,
        keeps_limits: false,
        is_sealed: false,
        resumes: true,
        holds: Box::new(lab),
    })
}
