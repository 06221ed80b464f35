//! The docker backend against the contract.

use std::sync::Arc;

use hermetic_sandbox::SystemView;
use hermetic_sandbox::conformance::Candidate;
use hermetic_types::InstallationId;

use hermetic_docker::User;

use crate::lab::{image, open, skip};

hermetic_sandbox::conformance!(candidate(User::Image).await);

/// As chats have it.
mod never_root {
    use super::{User, candidate};

    hermetic_sandbox::conformance!(candidate(User::NeverRoot).await);
}

async fn candidate(user: User) -> Option<Candidate> {
    if let Some(why) = skip().await {
        eprintln!("SKIP: docker conformance: {why}");
        return None;
    }
    let installation = InstallationId::random();
    Some(Candidate {
        backend: Arc::new(open(&installation, |config| {
            config.options.user = user.clone();
        })),
        other: Arc::new(open(&InstallationId::random(), |config| {
            config.options.user = user;
        })),
        installation,
        system: SystemView::Image(image()),
        keeps_limits: true,
        is_sealed: true,
        resumes: true,
        holds: Box::new(()),
    })
}
