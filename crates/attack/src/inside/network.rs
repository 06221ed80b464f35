//! Ways out that the kernel knows of. None is taken.

use std::fs;

use crate::{AttackFinding, AttemptState};

pub(super) fn findings() -> Vec<AttackFinding> {
    vec![interfaces(), routes()]
}

fn interfaces() -> AttackFinding {
    const ATTEMPT: &str = "a network interface but loopback";
    let Ok(text) = fs::read_to_string("/proc/net/dev") else {
        return AttackFinding::new(ATTEMPT, AttemptState::Untried, "/proc does not tell");
    };
    let others: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .filter(|name| *name != "lo")
        .collect();
    match others.is_empty() {
        true => AttackFinding::new(ATTEMPT, AttemptState::Held, "there is none"),
        false => AttackFinding::new(ATTEMPT, AttemptState::Open, others.join(", ")),
    }
}

fn routes() -> AttackFinding {
    const ATTEMPT: &str = "a route to anywhere";
    let Ok(four) = fs::read_to_string("/proc/net/route") else {
        return AttackFinding::new(ATTEMPT, AttemptState::Untried, "/proc does not tell");
    };
    let four = four.lines().skip(1).filter(|line| !line.starts_with("lo"));
    let six = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    let six = six
        .lines()
        .filter(|line| line.split_whitespace().last() != Some("lo"));
    match four.count() + six.count() {
        0 => AttackFinding::new(ATTEMPT, AttemptState::Held, "there is none"),
        count => AttackFinding::new(ATTEMPT, AttemptState::Open, format!("{count} routes")),
    }
}
