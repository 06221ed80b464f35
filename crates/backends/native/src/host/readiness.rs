//! What holds on this host, told by trying it.

use hermetic_sandbox::Readiness;

use super::native::Host;

pub(super) fn examine(_host: &Host) -> Readiness {
    Readiness { layers: Vec::new() }
}
