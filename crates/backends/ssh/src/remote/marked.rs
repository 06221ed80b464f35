//! Processes that are found by a variable they carry.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What starts new processes as fast as they are killed would otherwise be chased for ever.
const MARKED_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Kills all that carry it, and looks again until none does. False where some would not go.
pub(super) fn end(mark: (&str, &str)) -> bool {
    let line = format!("{}={}", mark.0, mark.1);
    let deadline = Instant::now() + MARKED_END_TIMEOUT;
    while kill_all(line.as_bytes()) {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Whether there was any. The environment is read after the descriptor is there: a number that was
/// given to somebody else meanwhile is never hit.
fn kill_all(line: &[u8]) -> bool {
    let mut any = false;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(pidfd) =
            Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            continue;
        };
        if carries(pid, line) {
            any = true;
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
    any
}

/// The dead that nobody has waited for yet have no environment any more.
fn carries(pid: i32, line: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
        env.split(|byte| *byte == 0)
            .any(|variable| variable == line)
    })
}
