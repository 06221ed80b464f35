//! The modal backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use crate::lab::{IMAGE, open, skip};
use crate::service::Service;

hermetic_sandbox::conformance!(candidate().await);

async fn candidate() -> Option<BackendCandidate> {
    if let Some(why) = skip().await {
        eprintln!("SKIP: modal conformance: {why}");
        return None;
    }
    let service = Service::open().await;
    let (installation, other) = (InstallationId::random(), InstallationId::random());
    let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
    Some(BackendCandidate {
        backend: Arc::new(open(&service, &installation, &homes[0], |_| {})),
        other: Arc::new(open(&service, &other, &homes[1], |_| {})),
        installation,
        system: SystemView::Image(IMAGE.to_owned()),
        // Processes are Modal's own to bound, and root there may raise what we set for files.
        keeps_limits: false,
        is_sealed: true,
        resumes: true,
        holds: Box::new((service, homes)),
    })
}
