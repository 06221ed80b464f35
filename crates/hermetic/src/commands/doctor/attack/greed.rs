//! Taking more than is allowed, which may cost a sandbox its life: the next attempt gets a fresh one.

use std::sync::Arc;

use hermetic_attack::{Finding, Order, State};
use hermetic_config::Config;
use hermetic_sandbox::{Backend, OwnProgram};
use hermetic_types::Limits;

use super::cell::Cell;
use crate::failure::Failure;

/// More than any of the small limits.
const TOO_MANY_PROCESSES: usize = 200;
const TOO_MANY_FILES: usize = 2000;
const TOO_MUCH_MEMORY: usize = 512 << 20;

const SILENT: &str = "the sandbox did not answer";

/// What is made for this is in `cells` afterwards.
pub(super) async fn findings(
    config: &Config,
    backend: &Arc<dyn Backend>,
    cells: &mut Vec<Cell>,
) -> Result<Vec<Finding>, Failure> {
    let (processes, files, memory) = orders();
    let limits = small(&config.terminal().limits);
    let fresh = || Cell::make(config, backend, "greedy", limits.clone());
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
    cells: &mut Vec<Cell>,
    fresh: impl AsyncFnOnce() -> Result<Cell, Failure>,
) -> Result<&Cell, Failure> {
    let answers = match cells.last() {
        Some(cell) => cell.output(OwnProgram::Reckon).await.is_some(),
        None => false,
    };
    if !answers {
        cells.push(fresh().await?);
    }
    let missing = || Failure::new("no sandbox is there to attack", "report it");
    cells.last().ok_or_else(missing)
}

/// Small enough that trying to get more costs the host nothing.
fn small(limits: &Limits) -> Limits {
    Limits {
        memory_bytes: 128 << 20,
        pids: 64,
        open_files: 256,
        ..limits.clone()
    }
}

type Attempt = (&'static str, Order);

fn orders() -> (Attempt, Attempt, Attempt) {
    (
        (
            "more processes than allowed",
            Order::Breed {
                count: TOO_MANY_PROCESSES,
            },
        ),
        (
            "more open files than allowed",
            Order::Hold {
                count: TOO_MANY_FILES,
            },
        ),
        (
            "more memory than allowed",
            Order::Eat {
                bytes: TOO_MUCH_MEMORY,
            },
        ),
    )
}

/// Being killed for it is how a bound is kept, whether that ends the process or all of the sandbox.
async fn take(backend: &Arc<dyn Backend>, cell: &Cell, attempt: &str, order: &Order) -> Finding {
    let said = cell.order(order).await;
    if let Some(finding) = said.findings.into_iter().next() {
        return finding;
    }
    match said.killed {
        Some(how) => Finding::new(attempt, State::Held, how),
        None if cell.has_ended(backend).await => {
            Finding::new(attempt, State::Held, "the sandbox was stopped for it")
        }
        None => Finding::new(attempt, State::Untried, SILENT),
    }
}

/// Hides from a timeout, and is looked for afterwards.
async fn outlive(cell: &Cell) -> Finding {
    const ATTEMPT: &str = "a process that outlives its command";
    cell.output(OwnProgram::HideFromTimeout).await;
    match cell.output(OwnProgram::ListProcesses).await {
        None => Finding::new(ATTEMPT, State::Untried, SILENT),
        Some(said) if said.contains("sleep 987") => {
            Finding::new(ATTEMPT, State::Open, "it was still there")
        }
        Some(_) => Finding::new(ATTEMPT, State::Held, "its whole tree was ended"),
    }
}
