//! Taking more than there is.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{AttackFinding, AttemptState};

/// Where no cgroup counts memory, somebody looks at it some times in a second. So long what was taken is
/// kept, for him to see on a machine that is busy.
const LOOKED_AT_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn breed(count: usize) -> AttackFinding {
    const ATTEMPT: &str = "more processes than allowed";
    let mut children: Vec<Child> = Vec::new();
    let mut refusal = None;
    for _ in 0..count {
        let child = Command::new("/proc/self/exe")
            .args([crate::ROLE, "lie-in-wait", "child"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => children.push(child),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
    }
    let born = children.len();
    // All of them, or the trials after this one would meet the bound too.
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
    match refusal {
        Some(error) => {
            AttackFinding::new(ATTEMPT, AttemptState::Held, format!("{error} after {born}"))
        }
        None => AttackFinding::new(ATTEMPT, AttemptState::Open, format!("{born} were started")),
    }
}

/// Says something only if it was not killed for it.
pub(super) fn eat(bytes: usize) -> AttackFinding {
    const ATTEMPT: &str = "more memory than allowed";
    const PIECE: usize = 1 << 20;
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    for piece in 0..bytes / PIECE {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(PIECE).is_err() {
            return AttackFinding::new(
                ATTEMPT,
                AttemptState::Held,
                format!("refused after {piece} MiB"),
            );
        }
        // Not zero, or the kernel would need no page for it.
        bytes.resize(PIECE, 0xa5);
        eaten.push(bytes);
    }
    std::thread::sleep(LOOKED_AT_WITHIN);
    let eaten = std::hint::black_box(eaten).len();
    AttackFinding::new(
        ATTEMPT,
        AttemptState::Open,
        format!("{eaten} MiB were filled"),
    )
}

pub(super) fn hold(count: usize) -> AttackFinding {
    const ATTEMPT: &str = "more open files than allowed";
    let mut held = Vec::new();
    for _ in 0..count {
        match File::open("/proc/self/exe") {
            Ok(file) => held.push(file),
            Err(error) => {
                return AttackFinding::new(
                    ATTEMPT,
                    AttemptState::Held,
                    format!("{error} after {}", held.len()),
                );
            }
        }
    }
    AttackFinding::new(
        ATTEMPT,
        AttemptState::Open,
        format!("{} were open", held.len()),
    )
}
