//! Who decides, and what is never shown.

use std::path::PathBuf;
use std::time::Duration;

use super::pick::{SettingPicker, words};

#[derive(Clone, Debug)]
pub struct ApprovalsConfig {
    pub mode: ApprovalMode,
    /// Silence is no.
    pub timeout: Duration,
    pub unattended: UnattendedAnswer,
    /// Patterns of commands that are never run.
    pub deny: Vec<String>,
    /// Patterns of commands that are run without asking.
    pub allow: Vec<String>,
    /// `platform:user`; whom an allowlist names where empty.
    pub approvers: Vec<String>,
    pub confirm_destructive_slash: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// A model looks first.
    Smart,
    /// A person, always.
    Manual,
    Off,
}

words!(ApprovalMode { "smart" => Smart, "manual" => Manual, "off" => Off });

/// Where nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnattendedAnswer {
    Deny,
    Approve,
}

words!(UnattendedAnswer { "deny" => Deny, "approve" => Approve });

#[derive(Clone, Debug)]
pub struct SecurityConfig {
    pub redact_secrets: bool,
    pub redact_pii: bool,
    /// The key of the audit record, where it does not lie beside it.
    pub audit_key_file: Option<PathBuf>,
    /// The note of where the audit record ends, where it does not lie beside it.
    pub audit_head_file: Option<PathBuf>,
    pub allow_private_urls: bool,
    /// Sites that web tools refuse; empty where the list is switched off.
    pub blocked_sites: Vec<String>,
}

impl ApprovalsConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        Self {
            mode: pick.choice("approvals.mode"),
            timeout: pick.seconds("approvals.timeout"),
            unattended: pick.choice("approvals.cron_mode"),
            deny: pick.texts("approvals.deny"),
            allow: pick.texts("command_allowlist"),
            approvers: pick.texts("approvals.approvers"),
            confirm_destructive_slash: pick.flag("approvals.destructive_slash_confirm"),
        }
    }
}

impl SecurityConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        let blocks = pick.flag("security.website_blocklist.enabled");
        Self {
            redact_secrets: pick.flag("security.redact_secrets"),
            redact_pii: pick.flag("privacy.redact_pii"),
            audit_key_file: pick.maybe_path("security.audit_key_file"),
            audit_head_file: pick.maybe_path("security.audit_head_file"),
            allow_private_urls: pick.flag("security.allow_private_urls"),
            blocked_sites: if blocks {
                pick.texts("security.website_blocklist.domains")
            } else {
                Vec::new()
            },
        }
    }
}
