//! The attack itself: who stands where, what is tried, and what came of it.

use std::sync::Arc;

use hermetic_app::{self as app, BackendCaller};
use hermetic_attack::{AttackFinding, AttackOrder, AttemptState};
use hermetic_config::Config;
use hermetic_sandbox::{Backend, OwnProgram};
use hermetic_types::{BackendKind, Boundary};

use super::bait::HostBait;
use super::cell::AttackCell;
use super::greed;
use crate::failure::CommandFailure;

pub(super) async fn findings(
    config: &Config,
    kind: BackendKind,
) -> Result<Vec<AttackFinding>, CommandFailure> {
    if app::boundary(kind) == Boundary::Judged {
        let detail = "commands run with the rights of a user of that machine";
        return Ok(vec![AttackFinding::new(
            "the seal",
            AttemptState::Open,
            detail,
        )]);
    }
    let installation = app::installation(config.home())?;
    let backend = app::backend(config, &installation, kind, BackendCaller::Chats)?;
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
    cells: &mut Vec<AttackCell>,
) -> Result<Vec<AttackFinding>, CommandFailure> {
    let limits = &config.terminal().limits;
    for name in ["attacker", "neighbour"] {
        cells.push(AttackCell::make(config, backend, name, limits.clone()).await?);
    }
    let [attacker, neighbour] = cells.as_slice() else {
        return Ok(Vec::new());
    };
    let mut findings = break_out(config, attacker, neighbour).await?;
    findings.extend(greed::findings(config, backend, cells).await?);
    Ok(findings)
}

async fn destroy(
    backend: &dyn Backend,
    cells: Vec<AttackCell>,
) -> Result<AttackFinding, CommandFailure> {
    const ATTEMPT: &str = "something that outlives its sandbox";
    let ids: Vec<_> = cells.iter().map(|cell| cell.id().clone()).collect();
    for cell in cells {
        cell.destroy().await?;
    }
    let left = backend.list().await?;
    Ok(
        match left.iter().filter(|found| ids.contains(&found.id)).count() {
            0 => AttackFinding::new(
                ATTEMPT,
                AttemptState::Held,
                "nothing is left of any of them",
            ),
            count => AttackFinding::new(
                ATTEMPT,
                AttemptState::Open,
                format!("{count} are still there"),
            ),
        },
    )
}

async fn break_out(
    config: &Config,
    attacker: &AttackCell,
    neighbour: &AttackCell,
) -> Result<Vec<AttackFinding>, CommandFailure> {
    let host = HostBait::lay(config)?;
    let (waiting, bait) = neighbour.lie_in_wait().await?;
    let order = AttackOrder::Try {
        host: host.bait(),
        neighbour: bait,
    };
    let said = attacker.order(&order).await;
    let mut findings = said.findings;
    if findings.is_empty() {
        let why = "nothing was said inside";
        findings.push(AttackFinding::new("the attack", AttemptState::Untried, why));
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
        findings.push(AttackFinding::new(
            "a server of the host",
            AttemptState::Open,
            detail,
        ));
    }
    // Not before: its bait lies as long as this is held.
    drop(waiting);
    Ok(findings)
}

/// Names of variables are nobody's secret; values are.
fn environment(inside: Option<&str>) -> AttackFinding {
    const ATTEMPT: &str = "a variable of the launcher";
    // A shorter value stands in other text by chance.
    const SHORTEST: usize = 8;
    let ordinary = [
        "PATH", "HOME", "PWD", "LANG", "TERM", "SHELL", "USER", "LOGNAME",
    ];
    let Some(inside) = inside else {
        return AttackFinding::new(ATTEMPT, AttemptState::Untried, "the sandbox did not answer");
    };
    let leaked: Vec<String> = std::env::vars()
        .filter(|(name, value)| value.len() >= SHORTEST && !ordinary.contains(&name.as_str()))
        .filter(|(_, value)| inside.contains(value.as_str()))
        .map(|(name, _)| name)
        .collect();
    match leaked.is_empty() {
        true => AttackFinding::new(ATTEMPT, AttemptState::Held, "none is there"),
        false => AttackFinding::new(ATTEMPT, AttemptState::Open, leaked.join(", ")),
    }
}
