//! The kubernetes backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use crate::lab::{IMAGE, open, skip};
use crate::server::Server;

hermetic_sandbox::conformance!(candidate().await);

async fn candidate() -> Option<BackendCandidate> {
    if let Some(why) = skip().await {
        eprintln!("SKIP: kubernetes conformance: {why}");
        return None;
    }
    let server = Server::open().await;
    let home = tempfile::tempdir().unwrap();
    let (installation, other) = (InstallationId::random(), InstallationId::random());
    Some(BackendCandidate {
        backend: Arc::new(open(&server.url, &installation, home.path(), |_| {})),
        other: Arc::new(open(&server.url, &other, home.path(), |_| {})),
        installation,
        system: SystemView::Image(IMAGE.to_owned()),
        keeps_limits: true,
        is_sealed: true,
        resumes: true,
        holds: Box::new((server, home)),
    })
}
