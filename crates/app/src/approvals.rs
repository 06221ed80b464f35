//! Who is asked about what a sandbox cannot undo, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_approvals::{ApprovalParts, Approvals, ModelReviewer};
use hermetic_chat::Chat;
use hermetic_config::{ApprovalMode, Config};
use hermetic_gateway::ApprovalService;
use hermetic_redact::Redactor;
use hermetic_store::Store;
use hermetic_types::SystemClock;
use tracing::{info, warn};

use super::{access, model};
use crate::Failure;

/// A person waits for what the model makes of it.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn approval_service(
    config: &Config,
    store: &Store,
    chats: &[Arc<dyn Chat>],
    redactor: &Redactor,
) -> Result<ApprovalService, Failure> {
    let approvals = guarded(config, store, redactor)?;
    access::warn_of_approvers(config);
    let approvers = access::approvers(config);
    Ok(ApprovalService::new(
        approvals,
        chats,
        redactor.clone(),
        approvers,
    ))
}

/// The questions of this home, for who asks them.
pub(crate) fn guarded(
    config: &Config,
    store: &Store,
    redactor: &Redactor,
) -> Result<Approvals, Failure> {
    let parts = parts(config, store, redactor.clone())?;
    // The system's journal belongs to somebody else than the record: whoever puts an earlier record back
    // does not put this line back.
    if let Some(head) = parts.audit.noted_head() {
        info!(%head, "the audit record goes on from here");
    }
    Ok(Approvals::new(ApprovalParts {
        reviewer: reviewer(config)?,
        ..parts
    }))
}

/// The questions of this home, for commands that look at them or answer one.
pub fn approvals(config: &Config, store: &Store) -> Result<Approvals, Failure> {
    parts(config, store, super::redactor(config)).map(Approvals::new)
}

fn parts<'a>(
    config: &Config,
    store: &'a Store,
    redactor: Redactor,
) -> Result<ApprovalParts<'a>, Failure> {
    Ok(ApprovalParts {
        store,
        audit: Arc::new(super::audit(config)?),
        redactor,
        timeout: config.approvals().timeout,
        reviewer: None,
        clock: SystemClock::shared(),
    })
}

pub(super) fn reviewer(config: &Config) -> Result<Option<ModelReviewer>, Failure> {
    if config.approvals().mode != ApprovalMode::Smart {
        return Ok(None);
    }
    let model = model::auxiliary(config, "approval")?;
    if model.is_none() {
        warn!("approvals.mode is smart and no model is configured: a person is asked each time");
    }
    Ok(model.map(|model| ModelReviewer::new(model, REVIEW_TIMEOUT)))
}
