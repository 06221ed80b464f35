//! The attack itself: who stands where, what is tried, and what came of it.

use std::sync::Arc;

use hermetic_app::{self as app, Caller};
use hermetic_attack::{Finding, Order, State};
use hermetic_config::Config;
use hermetic_sandbox::{Backend, OwnProgram};
use hermetic_types::{BackendKind, Boundary};

use super::bait::HostBait;
use super::cell::Cell;
use super::greed;
use crate::failure::Failure;

pub(super) async fn findings(config: &Config, kind: BackendKind) -> Result<Vec<Finding>, Failure> {
    if app::boundary(kind) == Boundary::Judged {
        let detail = "commands run with the rights of a user of that machine";
        return Ok(vec![Finding::new("the seal", State::Open, detail)]);
    }
    let installation = app::installation(config.home())?;
    let backend = app::backend(config, &installation, kind, Caller::Chats)?;
    let mut cells = Vec::new();
    let tried = attack(config, &backend, &mut cells).await;
    let left = destroy(backend.as_ref(), cells).await?;
    let mut findings = tried?;
    findings.push(left);
    Ok(findings)
}

/// What is in `cells` afterwards is there, whatever came of it.
async fn attack(
    config: &Config,
    backend: &Arc<dyn Backend>,
    cells: &mut Vec<Cell>,
) -> Result<Vec<Finding>, Failure> {
    let limits = &config.terminal().limits;
    for name in ["attacker", "neighbour"] {
        cells.push(Cell::make(config, backend, name, limits.clone()).await?);
    }
    let [attacker, neighbour] = cells.as_slice() else {
        return Ok(Vec::new());
    };
    let mut findings = break_out(config, attacker, neighbour).await?;
    findings.extend(greed::findings(config, backend, cells).await?);
    Ok(findings)
}

async fn destroy(backend: &dyn Backend, cells: Vec<Cell>) -> Result<Finding, Failure> {
    const ATTEMPT: &str = "something that outlives its sandbox";
    let ids: Vec<_> = cells.iter().map(|cell| cell.id().clone()).collect();
    for cell in cells {
        cell.destroy().await?;
    }
    let left = backend.list().await?;
    Ok(
        match left.iter().filter(|found| ids.contains(&found.id)).count() {
            0 => Finding::new(ATTEMPT, State::Held, "nothing is left of any of them"),
            count => Finding::new(ATTEMPT, State::Open, format!("{count} are still there")),
        },
    )
}

async fn break_out(
    config: &Config,
    attacker: &Cell,
    neighbour: &Cell,
) -> Result<Vec<Finding>, Failure> {
    let host = HostBait::lay(config)?;
    let (waiting, bait) = neighbour.lie_in_wait().await?;
    let order = Order::Try {
        host: host.bait(),
        neighbour: bait,
    };
    let said = attacker.order(&order).await;
    let mut findings = said.findings;
    if findings.is_empty() {
        let why = "nothing was said inside";
        findings.push(Finding::new("the attack", State::Untried, why));
    }
    findings.push(environment(
        attacker
            .output(OwnProgram::ShowEnvironments)
            .await
            .as_deref(),
    ));
    // What was seen from outside counts more than what was said inside.
    if host.was_found() {
        let detail = "a connection arrived";
        findings.push(Finding::new("a server of the host", State::Open, detail));
    }
    drop(waiting);
    Ok(findings)
}

/// Names of variables are nobody's secret; values are.
fn environment(inside: Option<&str>) -> Finding {
    const ATTEMPT: &str = "a variable of the launcher";
    const SHORTEST: usize = 8;
    let ordinary = [
        "PATH", "HOME", "PWD", "LANG", "TERM", "SHELL", "USER", "LOGNAME",
    ];
    let Some(inside) = inside else {
        return Finding::new(ATTEMPT, State::Untried, "the sandbox did not answer");
    };
    let leaked: Vec<String> = std::env::vars()
        .filter(|(name, value)| value.len() >= SHORTEST && !ordinary.contains(&name.as_str()))
        .filter(|(_, value)| inside.contains(value.as_str()))
        .map(|(name, _)| name)
        .collect();
    match leaked.is_empty() {
        true => Finding::new(ATTEMPT, State::Held, "none is there"),
        false => Finding::new(ATTEMPT, State::Open, leaked.join(", ")),
    }
}
