//! The singularity backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use crate::lab::{image, open, skip};

hermetic_sandbox::conformance!(candidate());

fn candidate() -> Option<BackendCandidate> {
    if let Some(why) = skip() {
        eprintln!("SKIP: singularity conformance: {why}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let installation = InstallationId::random();
    Some(BackendCandidate {
        backend: Arc::new(open(&folder.path().join("one"), &installation)),
        other: Arc::new(open(&folder.path().join("two"), &InstallationId::random())),
        installation,
        system: SystemView::Image(image()),
        keeps_limits: true,
        is_sealed: true,
        resumes: true,
        holds: Box::new(folder),
    })
}
