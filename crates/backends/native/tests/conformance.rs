//! The native backend against the contract.

use std::path::Path;
use std::sync::Arc;

use hermetic_native::{NativeBackend, NativeConfig};
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_sandbox::{Backend, SystemView};
use hermetic_types::InstallationId;

hermetic_sandbox::conformance!(candidate().await);

async fn candidate() -> Option<BackendCandidate> {
    let folder = tempfile::tempdir().unwrap();
    let installation = InstallationId::random();
    let backend = open(&folder.path().join("one"), &installation);
    if let Some(layer) = backend.readiness().await.missing() {
        eprintln!("SKIP: native conformance: {}: {}", layer.name, layer.detail);
        return None;
    }
    Some(BackendCandidate {
        other: open(&folder.path().join("two"), &InstallationId::random()),
        backend,
        installation,
        system: SystemView::Host,
        keeps_limits: true,
        is_sealed: true,
        resumes: true,
        holds: Box::new(folder),
    })
}

fn open(state: &Path, installation: &InstallationId) -> Arc<dyn Backend> {
    let native = NativeBackend::open(NativeConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: Vec::new(),
        authority: None,
        total: hermetic_native::TotalLimits::default(),
    });
    Arc::new(native.unwrap())
}
