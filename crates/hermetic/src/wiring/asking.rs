//! Who is asked about what a sandbox cannot undo, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_audit::Audit;
use hermetic_chat::Chat;
use hermetic_config::{ApprovalMode, Config};
use hermetic_gateway::{Approvals, Asking, Guard};
use hermetic_redact::Redactor;
use hermetic_store::Store;
use tracing::warn;

use super::{access, model};
use crate::failure::Failure;

/// A person waits for what the model makes of it.
const GUARD_PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn asking(
    config: &Config,
    store: &Store,
    chats: &[Arc<dyn Chat>],
    redactor: &Redactor,
) -> Result<Asking, Failure> {
    let approvals = guarded(config, store, redactor)?;
    access::warn_of_approvers(config);
    let approvers = access::approvers(config);
    Ok(Asking::new(approvals, chats, redactor.clone(), approvers))
}

/// The questions of this home, for who asks them.
pub(crate) fn guarded(
    config: &Config,
    store: &Store,
    redactor: &Redactor,
) -> Result<Approvals, Failure> {
    Ok(Approvals::new(
        store,
        Arc::new(super::audit(config)?),
        redactor.clone(),
        config.approvals().timeout,
        guard(config)?,
    ))
}

/// The questions of this home, for commands that look at them or answer one.
pub(crate) fn approvals(config: &Config, store: &Store) -> Result<Approvals, Failure> {
    let audit: Audit = super::audit(config)?;
    let redactor = super::redactor(config);
    let timeout = config.approvals().timeout;
    Ok(Approvals::new(
        store,
        Arc::new(audit),
        redactor,
        timeout,
        None,
    ))
}

pub(super) fn guard(config: &Config) -> Result<Option<Guard>, Failure> {
    if config.approvals().mode != ApprovalMode::Smart {
        return Ok(None);
    }
    let model = model::auxiliary(config, "approval")?;
    if model.is_none() {
        warn!("approvals.mode is smart and no model is configured: a person is asked each time");
    }
    Ok(model.map(|model| Guard::new(model, GUARD_PATIENCE)))
}
