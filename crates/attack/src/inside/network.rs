//! Ways out that the kernel knows of. None is taken.

use std::fs;

use crate::{Finding, State};

pub(super) fn findings() -> Vec<Finding> {
    vec![interfaces(), routes()]
}

fn interfaces() -> Finding {
    const ATTEMPT: &str = "a network interface but loopback";
    let Ok(text) = fs::read_to_string("/proc/net/dev") else {
        return Finding::new(ATTEMPT, State::Untried, "/proc does not tell");
    };
    let others: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .filter(|name| *name != "lo")
        .collect();
    match others.is_empty() {
        true => Finding::new(ATTEMPT, State::Held, "there is none"),
        false => Finding::new(ATTEMPT, State::Open, others.join(", ")),
    }
}

fn routes() -> Finding {
    const ATTEMPT: &str = "a route to anywhere";
    let Ok(four) = fs::read_to_string("/proc/net/route") else {
        return Finding::new(ATTEMPT, State::Untried, "/proc does not tell");
    };
    let four = four.lines().skip(1).filter(|line| !line.starts_with("lo"));
    let six = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    let six = six
        .lines()
        .filter(|line| line.split_whitespace().last() != Some("lo"));
    match four.count() + six.count() {
        0 => Finding::new(ATTEMPT, State::Held, "there is none"),
        count => Finding::new(ATTEMPT, State::Open, format!("{count} routes")),
    }
}
