//! The Daytona backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use crate::lab::{IMAGE, open, skip};
use crate::server::Server;

hermetic_sandbox::conformance!(candidate().await);

async fn candidate() -> Option<BackendCandidate> {
    if let Some(why) = skip() {
        eprintln!("SKIP: daytona conformance: {why}");
        return None;
    }
    let server = Server::start().await;
    let installation = InstallationId::random();
    Some(BackendCandidate {
        backend: Arc::new(open(&server, &installation, |_| {})),
        other: Arc::new(open(&server, &InstallationId::random(), |_| {})),
        installation,
        system: SystemView::Image(IMAGE.to_owned()),
        // The provider bounds no processes.
        keeps_limits: false,
        is_sealed: true,
        resumes: true,
        holds: Box::new(server),
    })
}
