//! What this process may do, by the kernel's own account.

use std::fs;

use crate::{AttackFinding, AttemptState};

pub(super) fn findings() -> Vec<AttackFinding> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    vec![
        capabilities(&status),
        expected(
            &status,
            "NoNewPrivs",
            "1",
            "gaining privileges by a program",
        ),
        expected(&status, "Seccomp", "2", "calling the kernel unfiltered"),
    ]
}

fn capabilities(status: &str) -> AttackFinding {
    const ATTEMPT: &str = "using a capability";
    let sets: Vec<(&str, &str)> = status
        .lines()
        .filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"))
        .collect();
    if sets.is_empty() {
        return AttackFinding::new(ATTEMPT, AttemptState::Untried, "/proc does not tell");
    }
    let mut left = sets
        .iter()
        .filter(|(_, bits)| bits.contains(|bit| bit != '0'));
    match left.next() {
        None => AttackFinding::new(ATTEMPT, AttemptState::Held, "there is none in any set"),
        Some((set, bits)) => AttackFinding::new(
            ATTEMPT,
            AttemptState::Open,
            format!("{bits} in the set Cap{set}"),
        ),
    }
}

fn expected(status: &str, field: &str, wanted: &str, attempt: &str) -> AttackFinding {
    let found = status
        .lines()
        .filter_map(|line| line.split_once(":\t"))
        .find(|(name, _)| *name == field);
    match found {
        Some((_, value)) if value == wanted => {
            AttackFinding::new(attempt, AttemptState::Held, format!("{field} is {value}"))
        }
        Some((_, value)) => {
            AttackFinding::new(attempt, AttemptState::Open, format!("{field} is {value}"))
        }
        None => AttackFinding::new(attempt, AttemptState::Untried, "/proc does not tell"),
    }
}
