//! The docker backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::BackendCandidate;
use hermetic_types::InstallationId;

use hermetic_docker::ContainerUser;

use crate::lab::{image, keeps_limits, open, skip};

hermetic_sandbox::conformance!(candidate(ContainerUser::Image).await);

/// As chats have it.
mod never_root {
    use super::{ContainerUser, candidate};

    hermetic_sandbox::conformance!(candidate(ContainerUser::NeverRoot).await);
}

async fn candidate(user: ContainerUser) -> Option<BackendCandidate> {
    if let Some(why) = skip().await {
        eprintln!("SKIP: docker conformance: {why}");
        return None;
    }
    let installation = InstallationId::random();
    Some(BackendCandidate {
        backend: Arc::new(open(&installation, |config| {
            config.options.user = user.clone();
        })),
        other: Arc::new(open(&InstallationId::random(), |config| {
            config.options.user = user;
        })),
        installation,
        system: SystemView::Image(image()),
        keeps_limits: keeps_limits(),
        is_sealed: true,
        resumes: true,
        holds: Box::new(()),
    })
}
