//! The docker backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::Candidate;
use hermetic_types::InstallationId;

use crate::lab::{image, open, skip};

hermetic_sandbox::conformance!(candidate().await);

async fn candidate() -> Option<Candidate> {
    if let Some(why) = skip().await {
        eprintln!("SKIP: docker conformance: {why}");
        return None;
    }
    let installation = InstallationId::random();
    Some(Candidate {
        backend: Arc::new(open(&installation, |_| {})),
        other: Arc::new(open(&InstallationId::random(), |_| {})),
        installation,
        system: SystemView::Image(image()),
        keeps_limits: true,
        is_sealed: true,
        resumes: true,
        holds: Box::new(()),
    })
}
