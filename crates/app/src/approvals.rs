//! Who is asked about what a sandbox cannot undo, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_agent::LanguageModel;
use hermetic_approvals::{ApprovalMetrics, ApprovalParts, ApprovalRegistry, ModelReviewer};
use hermetic_chat::Chat;
use hermetic_config::{ApprovalMode, Config};
use hermetic_gateway::ApprovalService;
use hermetic_redact::Redactor;
use hermetic_store::Store;
use hermetic_types::{SharedClock, SystemClock};
use tracing::{info, warn};

use super::{access, model};
use crate::AppFailure;

/// A person waits for what the model makes of it.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn approval_service(
    config: &Config,
    store: &Store,
    chats: &[Arc<dyn Chat>],
    redactor: &Redactor,
    (reviewer, clock): (Option<ModelReviewer>, SharedClock),
    metrics: ApprovalMetrics,
) -> Result<ApprovalService, AppFailure> {
    let approvals = guarded(config, store, redactor, (reviewer, clock), metrics)?;
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
    (reviewer, clock): (Option<ModelReviewer>, SharedClock),
    metrics: ApprovalMetrics,
) -> Result<ApprovalRegistry, AppFailure> {
    let parts = parts(config, store, redactor.clone(), clock)?;
    // The system's journal belongs to somebody else than the record: whoever puts an earlier record back
    // does not put this line back.
    if let Some(head) = parts.audit.noted_head() {
        info!(%head, "the audit record goes on from here");
    }
    Ok(ApprovalRegistry::new(ApprovalParts {
        reviewer,
        metrics,
        ..parts
    }))
}

/// The questions of this home, for commands that look at them or answer one.
pub fn approvals(config: &Config, store: &Store) -> Result<ApprovalRegistry, AppFailure> {
    let redactor = super::redactor(config);
    parts(config, store, redactor, SystemClock::shared()).map(ApprovalRegistry::new)
}

fn parts<'a>(
    config: &Config,
    store: &'a Store,
    redactor: Redactor,
    clock: SharedClock,
) -> Result<ApprovalParts<'a>, AppFailure> {
    Ok(ApprovalParts {
        store,
        audit: Arc::new(super::audit(config)?),
        redactor,
        timeout: config.approvals().timeout,
        reviewer: None,
        clock,
        metrics: ApprovalMetrics::default(),
    })
}

/// A model that looks at commands first, where the configuration wants one.
pub(super) fn reviewer_with(
    config: &Config,
    model: Arc<dyn LanguageModel>,
) -> Option<ModelReviewer> {
    let wanted = config.approvals().mode == ApprovalMode::Smart;
    wanted.then(|| ModelReviewer::new(model, REVIEW_TIMEOUT))
}

pub(super) fn reviewer(
    config: &Config,
    clock: &SharedClock,
) -> Result<Option<ModelReviewer>, AppFailure> {
    if config.approvals().mode != ApprovalMode::Smart {
        return Ok(None);
    }
    let model = model::reviewing(config, clock)?;
    // Not refused: without a model the question goes to a person, which is the stricter way.
    if model.is_none() {
        warn!("approvals.mode is smart and no model is configured: a person is asked each time");
    }
    Ok(model.and_then(|model| reviewer_with(config, model)))
}
