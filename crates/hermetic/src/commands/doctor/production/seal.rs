//! Where commands run, and what they reach.

use hermetic_app as app;
use hermetic_config::{ApprovalMode, Config, DayBudget, EgressMode};
use hermetic_sandbox::LayerState;
use hermetic_types::Boundary;

use super::ChecklistLine;
use super::machine::MachineFacts;
use crate::output::size;

pub(super) fn lines(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = sandbox(machine);
    lines.extend(shared_folders(config));
    lines.extend(egress(config));
    lines.push(day_budgets(config));
    lines.push(approvals(config));
    lines.push(redaction(config));
    lines.extend(limits(config, machine));
    lines
}

/// What somebody who writes all day, or a model that goes round in circles, may cost.
fn day_budgets(config: &Config) -> ChecklistLine {
    let budgets = config.budgets();
    let is_bounded = |day: &DayBudget| day.dollars.is_some() || day.tokens.is_some();
    match is_bounded(&budgets.all) || is_bounded(&budgets.person) {
        true => ChecklistLine::fine("spending", "a day has a bound in dollars or tokens"),
        false => ChecklistLine::advice(
            "spending",
            "the model may cost any amount in a day",
            "budgets.all.dollars: 5, and budgets.person.tokens for each",
        ),
    }
}

fn sandbox(machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = Vec::new();
    for (backend, readiness) in &machine.backends {
        let name = backend.to_string();
        if app::boundary(*backend) == Boundary::Judged {
            lines.push(ChecklistLine::weak(
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
                lines.push(ChecklistLine::weak("sandbox", what, remedy));
                continue;
            }
        };
        if let Some(layer) = readiness.missing() {
            let remedy = layer
                .remedy
                .clone()
                .unwrap_or_else(|| "see `hermetic doctor`".to_owned());
            let what = format!("{name}: nothing runs without {}", layer.name);
            lines.push(ChecklistLine::weak("sandbox", what, remedy));
            continue;
        }
        let less = readiness.layers.iter();
        let less = less.filter(|layer| layer.state != LayerState::Active);
        let less: Vec<_> = less.map(|layer| layer.name).collect();
        lines.push(match less.is_empty() {
            true => ChecklistLine::fine("sandbox", format!("{name}, every layer holds")),
            false => ChecklistLine::advice(
                "sandbox",
                format!("{name}; weaker or missing: {}", less.join(", ")),
                "`hermetic doctor` says how to mend each",
            ),
        });
    }
    lines
}

/// What the operator let sandboxes see, and risks that he took.
fn shared_folders(config: &Config) -> Option<ChecklistLine> {
    let native = &config.terminal().native;
    let risks = native
        .accept_risks
        .iter()
        .map(|path| path.display().to_string());
    let risks: Vec<_> = risks
        .chain(config.terminal().docker.accept_risks.iter().cloned())
        .collect();
    if !risks.is_empty() {
        return Some(ChecklistLine::weak(
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
        ChecklistLine::advice(
            "folders",
            format!("every conversation can change {}", writable.join(", ")),
            "leave out :rw where reading is enough",
        )
    })
}

fn egress(config: &Config) -> Vec<ChecklistLine> {
    let egress = config.egress();
    let mut lines = Vec::new();
    lines.push(match egress.mode {
        EgressMode::Open => ChecklistLine::weak(
            "egress",
            "sandboxes reach every public host, and so can what they leak",
            "gateway.egress.mode: allowlist",
        ),
        mode => ChecklistLine::fine("egress", format!("mode {}", mode.name())),
    });
    if egress.allow_private {
        lines.push(ChecklistLine::weak(
            "egress",
            "sandboxes may reach private addresses: your router, your other machines",
            "gateway.egress.allow_private: false, and ` in RANGE` behind the hosts that need it",
        ));
    }
    if egress.mode != EgressMode::Closed && egress.budget_bytes.is_none() {
        lines.push(ChecklistLine::advice(
            "budget",
            "a conversation may transfer any amount",
            "gateway.egress.budget_bytes: 1GB",
        ));
    }
    lines
}

fn approvals(config: &Config) -> ChecklistLine {
    match config.approvals().mode {
        ApprovalMode::Off => ChecklistLine::weak(
            "approvals",
            "nobody is asked about anything",
            "approvals.mode: manual",
        ),
        ApprovalMode::Smart => ChecklistLine::advice(
            "approvals",
            "a model looks at commands before a person does, and may let them through",
            "approvals.mode: manual",
        ),
        ApprovalMode::Manual => ChecklistLine::fine("approvals", "a person decides"),
    }
}

fn redaction(config: &Config) -> ChecklistLine {
    match config.security().redact_secrets {
        true => ChecklistLine::fine("secrets", "taken out of what leaves"),
        false => ChecklistLine::weak(
            "secrets",
            "secrets are not taken out of answers and logs",
            "security.redact_secrets: true",
        ),
    }
}

/// One conversation alone must not be able to use the machine up.
fn limits(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let limits = &config.terminal().limits;
    let mut lines = Vec::new();
    if let Some(memory) = machine.memory_bytes {
        let asked = size(limits.memory_bytes);
        if limits.memory_bytes > memory / 4 * 3 {
            let fits = (memory / 4) >> 20;
            lines.push(ChecklistLine::weak(
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
        lines.push(ChecklistLine::weak(
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
        lines.push(ChecklistLine::advice(
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
        lines.push(ChecklistLine::fine("limits", what));
    }
    lines
}
