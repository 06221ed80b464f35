//! Ways out that the kernel knows of. None is taken.

use std::fs;
use std::path::Path;

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
    let (closed, open): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|name| is_closed(name));
    match (open.as_slice(), closed.as_slice()) {
        ([], []) => AttackFinding::new(ATTEMPT, AttemptState::Held, "there is none"),
        ([], closed) => {
            let said = format!("nobody is at the other end of {}", closed.join(", "));
            AttackFinding::new(ATTEMPT, AttemptState::Held, said)
        }
        (open, _) => AttackFinding::new(ATTEMPT, AttemptState::Open, open.join(", ")),
    }
}

/// A tap that no program of the host holds: containerd's networks give each pod an interface, whatever they
/// are for.
fn is_closed(name: &str) -> bool {
    let interface = Path::new("/sys/class/net").join(name);
    let carrier = fs::read_to_string(interface.join("carrier"));
    interface.join("tun_flags").exists() && carrier.is_ok_and(|carrier| carrier.trim() == "0")
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
