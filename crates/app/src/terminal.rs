//! The terminal and the policy it asks, from the configuration.

use std::env;
use std::sync::Arc;

use hermetic_config::{ApprovalMode, Config};
use hermetic_policy::{Context, Mode, Policy, Rules};
use hermetic_redact::Redactor;
use hermetic_tools::{Settings, Terminal};
use hermetic_types::{BackendKind, Boundary};

use super::{boundary, description, ssh};

/// Where a sealed sandbox keeps the conversation's files.
const SEALED_WORKSPACE: &str = "/workspace";
const SEALED_HOME: &str = "/home/agent";

pub fn policy(config: &Config) -> Policy {
    let approvals = config.approvals();
    let rules = Rules {
        deny: approvals.deny.clone(),
        allow: approvals.allow.clone(),
        mode: match approvals.mode {
            ApprovalMode::Smart => Mode::Smart,
            ApprovalMode::Manual => Mode::Manual,
            ApprovalMode::Off => Mode::Off,
        },
    };
    Policy::new(rules)
}

pub(super) fn terminal(
    config: &Config,
    backend: BackendKind,
    policy: Arc<Policy>,
    redactor: Redactor,
) -> Terminal {
    let terminal = config.terminal();
    let settings = Settings {
        context: context(config, backend),
        timeout: terminal.timeout.min(terminal.longest_timeout),
        longest_timeout: terminal.longest_timeout,
        persistent_shell: match backend {
            BackendKind::Local => terminal.local_persistent_shell,
            BackendKind::Ssh => terminal.ssh_persistent_shell,
            _ => terminal.persistent_shell,
        },
        output_chars: config.agent().tool_output.max_bytes,
        sudo_password: terminal.sudo_password.clone(),
    };
    Terminal::new(policy, redactor, settings)
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

pub fn context(config: &Config, backend: BackendKind) -> Context {
    let home = match (boundary(backend), backend) {
        (Boundary::Sealed, _) => SEALED_HOME.to_owned(),
        (_, BackendKind::Ssh) => ssh::home(config),
        (Boundary::Judged, _) => env::var("HOME").unwrap_or_else(|_| "/root".to_owned()),
    };
    let mut context = Context::new(description(backend), workspace(config, backend), home);
    context.own_home = config.home().root().display().to_string();
    if let Ok(program) = env::current_exe() {
        context.own_files.push(program.display().to_string());
    }
    context
}
