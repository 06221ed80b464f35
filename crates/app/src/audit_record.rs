//! The record of a home: where it is, and opened.

use hermetic_audit::{AuditLog, AuditPaths};
use hermetic_config::Config;

use super::AppFailure;

/// Where the record of this home is, its key, and the note of where it ends.
pub fn audit_places(config: &Config) -> AuditPaths {
    let security = config.security();
    AuditPaths::beside(&config.home().state().join("audit.jsonl"))
        .with_key(security.audit_key_file.clone())
        .with_head(security.audit_head_file.clone())
}

/// The record of this home, to be added to. Its folder is there.
pub fn audit(config: &Config) -> Result<AuditLog, AppFailure> {
    Ok(AuditLog::open_at(audit_places(config))?)
}
