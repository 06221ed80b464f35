//! Taking more than is allowed, which may cost a sandbox its life: the next attempt gets a fresh one.

use std::sync::Arc;

use hermetic_attack::{AttackFinding, AttackOrder, AttemptState};
use hermetic_config::Config;
use hermetic_sandbox::{Backend, OwnProgram};
use hermetic_types::SandboxLimits;

use super::cell::AttackCell;
use crate::failure::CommandFailure;

/// More than any of the small limits.
const TOO_MANY_PROCESSES: usize = 200;
const TOO_MANY_FILES: usize = 2000;
const TOO_MUCH_MEMORY: usize = 512 << 20;

const SILENT: &str = "the sandbox did not answer";

/// What is made for this is in `cells` afterwards.
pub(super) async fn findings(
    config: &Config,
    backend: &Arc<dyn Backend>,
    cells: &mut Vec<AttackCell>,
) -> Result<Vec<AttackFinding>, CommandFailure> {
    let (processes, files, memory) = orders();
    let limits = small(&config.terminal().limits);
    let fresh = || AttackCell::make(config, backend, "greedy", limits.clone());
    cells.push(fresh().await?);
    let mut findings = Vec::new();
    for (attempt, order) in [processes, files, memory] {
        let cell = living(cells, fresh).await?;
        findings.push(take(backend, cell, attempt, &order).await);
    }
    findings.push(outlive(living(cells, fresh).await?).await);
    Ok(findings)
}

/// The newest, or one made in its place: the attempt before may have cost it its life, at once or a moment
/// after it answered.
async fn living(
    cells: &mut Vec<AttackCell>,
    fresh: impl AsyncFnOnce() -> Result<AttackCell, CommandFailure>,
) -> Result<&AttackCell, CommandFailure> {
    let answers = match cells.last() {
        Some(cell) => cell.output(OwnProgram::Reckon).await.is_some(),
        None => false,
    };
    if !answers {
        cells.push(fresh().await?);
    }
    let missing = || CommandFailure::new("no sandbox is there to attack", "report it");
    cells.last().ok_or_else(missing)
}

/// Small enough that trying to get more costs the host nothing.
fn small(limits: &SandboxLimits) -> SandboxLimits {
    SandboxLimits {
        memory_bytes: 128 << 20,
        pids: 64,
        open_files: 256,
        ..limits.clone()
    }
}

type GreedyAttempt = (&'static str, AttackOrder);

fn orders() -> (GreedyAttempt, GreedyAttempt, GreedyAttempt) {
    (
        (
            "more processes than allowed",
            AttackOrder::Breed {
                count: TOO_MANY_PROCESSES,
            },
        ),
        (
            "more open files than allowed",
            AttackOrder::Hold {
                count: TOO_MANY_FILES,
            },
        ),
        (
            "more memory than allowed",
            AttackOrder::Eat {
                bytes: TOO_MUCH_MEMORY,
            },
        ),
    )
}

/// Being killed for it is how a bound is kept, whether that ends the process or all of the sandbox.
async fn take(
    backend: &Arc<dyn Backend>,
    cell: &AttackCell,
    attempt: &str,
    order: &AttackOrder,
) -> AttackFinding {
    let said = cell.order(order).await;
    if let Some(finding) = said.findings.into_iter().next() {
        return finding;
    }
    match said.killed {
        Some(how) => AttackFinding::new(attempt, AttemptState::Held, how),
        None if cell.has_ended(backend).await => AttackFinding::new(
            attempt,
            AttemptState::Held,
            "the sandbox was stopped for it",
        ),
        None => AttackFinding::new(attempt, AttemptState::Untried, SILENT),
    }
}

/// Hides from a timeout, and is looked for afterwards.
async fn outlive(cell: &AttackCell) -> AttackFinding {
    const ATTEMPT: &str = "a process that outlives its command";
    cell.output(OwnProgram::HideFromTimeout).await;
    match cell.output(OwnProgram::ListProcesses).await {
        None => AttackFinding::new(ATTEMPT, AttemptState::Untried, SILENT),
        Some(said) if said.contains("sleep 987") => {
            AttackFinding::new(ATTEMPT, AttemptState::Open, "it was still there")
        }
        Some(_) => AttackFinding::new(ATTEMPT, AttemptState::Held, "its whole tree was ended"),
    }
}
