//! A scope of systemd's for this process: a group of its own, delegated, asked for where the one we were
//! started in is shared, as in a login shell.
//!
//! By `busctl`, which comes with systemd and speaks to the machine's manager or the user's alike.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getuid;

/// A manager that is busy takes long to move a process.
const SCOPE_TIMEOUT: Duration = Duration::from_secs(15);

/// Whether systemd runs this machine.
pub(super) fn systemd_is_there() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Whether this very process is what systemd started as a service.
pub(super) fn is_a_service() -> bool {
    let pid = std::process::id().to_string();
    // Compared: the variable is inherited by what a service starts, which is no service itself.
    std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|started| started == pid)
}

/// Moves this process, and nothing else, into a new scope. Says why not, in words.
pub(super) fn enter(name: &str) -> Result<(), String> {
    let runtime = format!("/run/user/{}", getuid().as_raw());
    let root = getuid().is_root();
    if !root && !Path::new(&runtime).join("bus").exists() {
        return Err("no systemd of yours runs".to_owned());
    }
    let mut command = Command::new("busctl");
    command.args(words(name, std::process::id(), root));
    if !root {
        // Not there after `su`, nor in a crontab.
        command.env("XDG_RUNTIME_DIR", runtime);
    }
    let asked = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("busctl cannot be started: {error}"))?;
    if !asked.status.success() {
        let said = String::from_utf8_lossy(&asked.stderr);
        let line: String = said.trim().chars().take(200).collect();
        return Err(format!("systemd refuses a scope: {line}"));
    }
    // The answer names a job; the move is its last step.
    let deadline = Instant::now() + SCOPE_TIMEOUT;
    while !is_in(&own_groups(), name) {
        if Instant::now() > deadline {
            return Err("systemd took too long over a scope".to_owned());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn words(name: &str, pid: u32, root: bool) -> Vec<String> {
    let manager = if root { "--system" } else { "--user" };
    let pid = pid.to_string();
    let words = [
        manager,
        "--timeout=15",
        "call",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
        name,
        "fail",
        "4",
        "Description",
        "s",
        "Hermetic, started by hand, and its sandboxes",
        "PIDs",
        "au",
        "1",
        pid.as_str(),
        "Delegate",
        "b",
        "true",
        "CollectMode",
        "s",
        "inactive-or-failed",
        "0",
    ];
    words.map(str::to_owned).into()
}

fn own_groups() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

fn is_in(groups: &str, scope: &str) -> bool {
    groups
        .lines()
        .filter_map(|line| line.strip_prefix("0::"))
        .any(|path| path.rsplit('/').next() == Some(scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `busctl` reads it: a name, a mode, properties with their signatures, and no other units.
    #[test]
    fn one_process_is_asked_for_and_the_scope_is_delegated() {
        let words = words("hermetic-a.scope", 4711, false).join(" ");
        assert!(words.starts_with("--user "), "{words}");
        let call = "StartTransientUnit ssa(sv)a(sa(sv)) hermetic-a.scope fail 4 Description s ";
        assert!(words.contains(call), "{words}");
        assert!(
            words.contains(" PIDs au 1 4711 Delegate b true CollectMode s "),
            "{words}"
        );
        assert!(words.ends_with(" 0"), "{words}");
    }

    #[test]
    fn only_the_scope_itself_counts_as_arrival() {
        let in_session = "1:name=systemd:/x/hermetic-a.scope\n0::/user.slice/session-1.scope\n";
        assert!(!is_in(in_session, "hermetic-a.scope"));
        assert!(!is_in(
            "0::/system.slice/hermetic-a.scope/leaf\n",
            "hermetic-a.scope"
        ));
        assert!(is_in(
            "0::/system.slice/hermetic-a.scope\n",
            "hermetic-a.scope"
        ));
    }
}
