//! The second layer: even where a mount were writable by mistake, only these places are.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};

use super::step_failure::{FailingStep, StepFailure};

/// The newest one whose every right is named here. Older kernels keep what they know.
const NEWEST: ABI = ABI::V6;

/// The ABI that holds, or nothing where the kernel has no Landlock.
///
/// `ourselves` is this program's file, which is out of sight by now: it starts itself again to look through
/// files. Held in memory it is no file and needs no rule.
pub(crate) fn restrict(
    writable: &[PathBuf],
    ourselves: Option<&Path>,
) -> Result<Option<u8>, StepFailure> {
    let status = apply(writable, ourselves)
        .map_err(|error| io::Error::other(error.to_string()))
        .step("restrict with landlock")?;
    Ok(match status {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u8),
        _ => None,
    })
}

fn apply(writable: &[PathBuf], ourselves: Option<&Path>) -> Result<LandlockStatus, Box<dyn Error>> {
    // TCP is left alone: the network namespace holds a loopback and nothing else.
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rule(beneath("/", reading())?)?
        .add_rule(beneath("/dev", devices())?)?
        // Read-only where it matters; a process may write what is its own, as oom_score_adj.
        .add_rule(beneath("/proc", reading() | AccessFs::WriteFile)?)?;
    for place in writable {
        rules = rules.add_rule(beneath(place, writing())?)?;
    }
    if let Some(program) = ourselves {
        let run = AccessFs::Execute | AccessFs::ReadFile;
        rules = rules.add_rule(beneath(program, run)?)?;
    }
    Ok(rules.restrict_self()?.landlock)
}

fn beneath(
    path: impl AsRef<Path>,
    access: BitFlags<AccessFs>,
) -> Result<PathBeneath<PathFd>, Box<dyn Error>> {
    Ok(PathBeneath::new(PathFd::new(path)?, access))
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

fn devices() -> BitFlags<AccessFs> {
    reading() | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}
