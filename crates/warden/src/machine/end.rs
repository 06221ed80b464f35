//! Ends a warden that does not end by itself, with all that hangs below it.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};

use super::{kill, reap, wait_for_end};

/// A warden that is asked to end kills what it started, which takes milliseconds.
const ASKED: Duration = Duration::from_secs(12);
const FORCED: Duration = Duration::from_secs(5);

/// True when the warden and everything below it was seen to be gone.
pub fn end(warden: i32, pidfd: BorrowedFd<'_>) -> bool {
    // Asked first: a warden that ends itself finds what hid below it, which nobody can from
    // outside.
    let _ = pidfd_send_signal(pidfd, Signal::TERM);
    if wait_for_end(pidfd, ASKED) {
        reap(pidfd);
        return true;
    }
    // Stopped first: a parent that is stopped has no new children.
    let deadline = Instant::now() + FORCED;
    let _ = pidfd_send_signal(pidfd, Signal::STOP);
    while Instant::now() < deadline {
        let below = descendants(warden);
        if below.is_empty() {
            break;
        }
        // All are stopped before any is killed: a child that sees its parent die could go on
        // forking.
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in below.iter().copied().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, signal);
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    // The warden last. It is where orphans turn up, and with it they would be lost from sight.
    kill(pidfd.as_fd(), FORCED) && descendants(warden).is_empty()
}

/// Living processes below `root`. Zombies do not count: their parent is stopped and cannot collect
/// them.
fn descendants(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some(parent) = parent_of(pid)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut look = vec![root];
    while let Some(pid) = look.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(&below);
        look.extend(below);
    }
    found
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last bracket is well-formed.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}
