//! The terminal and the policy it asks, from the configuration.

use std::env;
use std::sync::Arc;

use hermetic_config::{ApprovalMode, Config};
use hermetic_policy::{JudgementContext, Policy, PolicyMode, PolicyRules};
use hermetic_redact::Redactor;
use hermetic_tools::{TerminalSettings, TerminalTool};
use hermetic_types::{BackendKind, Boundary};

use super::{boundary, description, ssh};

/// Where a sealed sandbox keeps the conversation's files.
const SEALED_WORKSPACE: &str = "/workspace";
const SEALED_HOME: &str = "/home/agent";

pub fn policy(config: &Config) -> Policy {
    let approvals = config.approvals();
    let rules = PolicyRules {
        deny: approvals.deny.clone(),
        allow: approvals.allow.clone(),
        mode: match approvals.mode {
            ApprovalMode::Smart => PolicyMode::Smart,
            ApprovalMode::Manual => PolicyMode::Manual,
            ApprovalMode::Off => PolicyMode::Off,
        },
    };
    Policy::new(rules)
}

pub(super) fn terminal(
    config: &Config,
    backend: BackendKind,
    policy: Arc<Policy>,
    redactor: Redactor,
) -> TerminalTool {
    let terminal = config.terminal();
    let settings = TerminalSettings {
        context: context(config, backend),
        timeout: terminal.timeout.min(terminal.max_foreground_timeout),
        max_foreground_timeout: terminal.max_foreground_timeout,
        persistent_shell: match backend {
            BackendKind::Local => terminal.local_persistent_shell,
            BackendKind::Ssh => terminal.ssh_persistent_shell,
            _ => terminal.persistent_shell,
        },
        output_chars: config.agent().tool_output.max_bytes,
        sudo_password: terminal.sudo_password.clone(),
    };
    TerminalTool::new(policy, redactor, settings)
}

/// The folder commands start in.
pub(crate) fn workspace(config: &Config, backend: BackendKind) -> String {
    let written = config.terminal().cwd.clone();
    match (boundary(backend), backend) {
        (Boundary::Sealed, _) => SEALED_WORKSPACE.to_owned(),
        // A folder below, of the conversation's own.
        (_, BackendKind::Ssh) => {
            written.unwrap_or_else(|| format!("{}/.hermetic", ssh::home(config)))
        }
        (Boundary::Judged, _) => {
            written.unwrap_or_else(|| env::current_dir().unwrap_or_default().display().to_string())
        }
    }
}

pub fn context(config: &Config, backend: BackendKind) -> JudgementContext {
    let home = match (boundary(backend), backend) {
        (Boundary::Sealed, _) => SEALED_HOME.to_owned(),
        (_, BackendKind::Ssh) => ssh::home(config),
        (Boundary::Judged, _) => env::var("HOME").unwrap_or_else(|_| "/root".to_owned()),
    };
    let mut context = JudgementContext::new(description(backend), workspace(config, backend), home);
    context.own_home = config.home().root().display().to_string();
    if let Ok(program) = env::current_exe() {
        context.own_files.push(program.display().to_string());
    }
    context
}
