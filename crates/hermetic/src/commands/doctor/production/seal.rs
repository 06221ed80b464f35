//! Where commands run, and what they reach.

use hermetic_app as app;
use hermetic_config::{ApprovalMode, Config, EgressMode};
use hermetic_sandbox::LayerState;
use hermetic_types::Boundary;

use super::CheckedLine;
use super::machine::MachineFacts;
use crate::output::size;

pub(super) fn lines(config: &Config, machine: &MachineFacts) -> Vec<CheckedLine> {
    let mut lines = sandbox(machine);
    lines.extend(shared_folders(config));
    lines.extend(egress(config));
    lines.push(approvals(config));
    lines.push(redaction(config));
    lines.extend(limits(config, machine));
    lines
}

fn sandbox(machine: &MachineFacts) -> Vec<CheckedLine> {
    let mut lines = Vec::new();
    for (backend, readiness) in &machine.backends {
        let name = backend.to_string();
        if app::boundary(*backend) == Boundary::Judged {
            lines.push(CheckedLine::weak(
                "sandbox",
                format!("{name} is no boundary: commands have the rights of whoever runs there"),
                "gateway.terminal_backend: native, or docker",
            ));
            continue;
        }
        let readiness = match readiness {
            Ok(readiness) => readiness,
            Err(why) => {
                let remedy = format!("`hermetic doctor --backend {name}` tells more");
                let what = format!("{name} cannot be used: {why}");
                lines.push(CheckedLine::weak("sandbox", what, remedy));
                continue;
            }
        };
        if let Some(layer) = readiness.missing() {
            let remedy = layer
                .remedy
                .clone()
                .unwrap_or_else(|| "see `hermetic doctor`".to_owned());
            let what = format!("{name}: nothing runs without {}", layer.name);
            lines.push(CheckedLine::weak("sandbox", what, remedy));
            continue;
        }
        let less = readiness.layers.iter();
        let less = less.filter(|layer| layer.state != LayerState::Active);
        let less: Vec<_> = less.map(|layer| layer.name).collect();
        lines.push(match less.is_empty() {
            true => CheckedLine::fine("sandbox", format!("{name}, every layer holds")),
            false => CheckedLine::advice(
                "sandbox",
                format!("{name}; weaker or missing: {}", less.join(", ")),
                "`hermetic doctor` says how to mend each",
            ),
        });
    }
    lines
}

/// What the operator let sandboxes see, and risks that he took.
fn shared_folders(config: &Config) -> Option<CheckedLine> {
    let native = &config.terminal().native;
    let risks = native
        .accept_risks
        .iter()
        .map(|path| path.display().to_string());
    let risks: Vec<_> = risks
        .chain(config.terminal().docker.accept_risks.iter().cloned())
        .collect();
    if !risks.is_empty() {
        return Some(CheckedLine::weak(
            "folders",
            format!("risks that were accepted: {}", risks.join(", ")),
            "take them out of terminal.native_accept_risks and terminal.docker_accept_risks",
        ));
    }
    let writable: Vec<_> = native
        .mounts
        .iter()
        .filter(|mount| mount.writable)
        .map(|mount| mount.source.display().to_string())
        .collect();
    (!writable.is_empty()).then(|| {
        CheckedLine::advice(
            "folders",
            format!("every conversation can change {}", writable.join(", ")),
            "leave out :rw where reading is enough",
        )
    })
}

fn egress(config: &Config) -> Vec<CheckedLine> {
    let egress = config.egress();
    let mut lines = Vec::new();
    lines.push(match egress.mode {
        EgressMode::Open => CheckedLine::weak(
            "egress",
            "sandboxes reach every public host, and so can what they leak",
            "gateway.egress.mode: allowlist",
        ),
        mode => CheckedLine::fine("egress", format!("mode {}", mode.name())),
    });
    if egress.allow_private {
        lines.push(CheckedLine::weak(
            "egress",
            "sandboxes may reach private addresses: your router, your other machines",
            "gateway.egress.allow_private: false, and ` in RANGE` behind the hosts that need it",
        ));
    }
    if egress.mode != EgressMode::Closed && egress.budget_bytes.is_none() {
        lines.push(CheckedLine::advice(
            "budget",
            "a conversation may transfer any amount",
            "gateway.egress.budget_bytes: 1GB",
        ));
    }
    lines
}

fn approvals(config: &Config) -> CheckedLine {
    match config.approvals().mode {
        ApprovalMode::Off => CheckedLine::weak(
            "approvals",
            "nobody is asked about anything",
            "approvals.mode: manual",
        ),
        ApprovalMode::Smart => CheckedLine::advice(
            "approvals",
            "a model looks at commands before a person does, and may let them through",
            "approvals.mode: manual",
        ),
        ApprovalMode::Manual => CheckedLine::fine("approvals", "a person decides"),
    }
}

fn redaction(config: &Config) -> CheckedLine {
    match config.security().redact_secrets {
        true => CheckedLine::fine("secrets", "taken out of what leaves"),
        false => CheckedLine::weak(
            "secrets",
            "secrets are not taken out of answers and logs",
            "security.redact_secrets: true",
        ),
    }
}

/// One conversation alone must not be able to use the machine up.
fn limits(config: &Config, machine: &MachineFacts) -> Vec<CheckedLine> {
    let limits = &config.terminal().limits;
    let mut lines = Vec::new();
    if let Some(memory) = machine.memory_bytes {
        let asked = size(limits.memory_bytes);
        if limits.memory_bytes > memory / 4 * 3 {
            let fits = (memory / 4) >> 20;
            lines.push(CheckedLine::weak(
                "limits",
                format!(
                    "one sandbox may use {asked} of memory, and this machine has {}",
                    size(memory)
                ),
                format!("terminal.container_memory: {}", fits.max(64)),
            ));
        }
    }
    if let Some(free) = machine.disk_free_bytes
        && limits.disk_bytes > free
    {
        let fits = (free / 4) >> 20;
        lines.push(CheckedLine::weak(
            "limits",
            format!(
                "one sandbox may use {} of disk, and {} are free",
                size(limits.disk_bytes),
                size(free)
            ),
            format!("terminal.container_disk: {}", fits.max(64)),
        ));
    }
    let cores = machine.cores as f64;
    if limits.cpu > cores {
        lines.push(CheckedLine::advice(
            "limits",
            format!(
                "one sandbox may use {} cores of {}",
                limits.cpu, machine.cores
            ),
            "terminal.container_cpu: 1",
        ));
    }
    if lines.is_empty() {
        let what = format!(
            "{} cpu, {} memory, {} disk, {} processes for each sandbox",
            limits.cpu,
            size(limits.memory_bytes),
            size(limits.disk_bytes),
            limits.pids
        );
        lines.push(CheckedLine::fine("limits", what));
    }
    lines
}
