//! What this process may do, by the kernel's own account.

use std::fs;

use crate::{Finding, State};

pub(super) fn findings() -> Vec<Finding> {
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

fn capabilities(status: &str) -> Finding {
    const ATTEMPT: &str = "using a capability";
    let sets: Vec<(&str, &str)> = status
        .lines()
        .filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"))
        .collect();
    if sets.is_empty() {
        return Finding::new(ATTEMPT, State::Untried, "/proc does not tell");
    }
    let mut left = sets
        .iter()
        .filter(|(_, bits)| bits.contains(|bit| bit != '0'));
    match left.next() {
        None => Finding::new(ATTEMPT, State::Held, "there is none in any set"),
        Some((set, bits)) => {
            Finding::new(ATTEMPT, State::Open, format!("{bits} in the set Cap{set}"))
        }
    }
}

fn expected(status: &str, field: &str, wanted: &str, attempt: &str) -> Finding {
    let found = status
        .lines()
        .filter_map(|line| line.split_once(":\t"))
        .find(|(name, _)| *name == field);
    match found {
        Some((_, value)) if value == wanted => {
            Finding::new(attempt, State::Held, format!("{field} is {value}"))
        }
        Some((_, value)) => Finding::new(attempt, State::Open, format!("{field} is {value}")),
        None => Finding::new(attempt, State::Untried, "/proc does not tell"),
    }
}
