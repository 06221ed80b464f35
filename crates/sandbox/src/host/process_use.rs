//! What processes of this machine use, as the kernel tells it under `/proc`.
//!
//! Processes come and go while they are counted: one that is not there any more counts for nothing.

use std::collections::HashMap;
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use crate::SandboxProcess;

/// More processes than any limit allows: a bound on the work of one look.
const MOST_COUNTED: usize = 4096;

/// The kernel's unit of processor time under `/proc`, the same on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// What one process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessFigures {
    cpu_ticks: u64,
    /// Of children that ended and were waited for.
    child_ticks: u64,
}

/// The process and all that descend from it. The first process of a sandbox is the reaper of everything in
/// it, so nothing escapes this.
pub fn process_tree(first: i32) -> Vec<i32> {
    if lists_children() {
        return descend(first, children);
    }
    let by_parent = children_by_parent();
    descend(first, |pid| {
        by_parent.get(&pid).cloned().unwrap_or_default()
    })
}

fn descend(first: i32, children: impl Fn(i32) -> Vec<i32>) -> Vec<i32> {
    let mut tree = vec![first];
    let mut next = 0;
    while next < tree.len() && tree.len() < MOST_COUNTED {
        tree.extend(children(tree[next]));
        next += 1;
    }
    tree
}

/// False on a kernel built without `CONFIG_PROC_CHILDREN`, where each process would seem to have none.
fn lists_children() -> bool {
    static LISTED: LazyLock<bool> =
        LazyLock::new(|| fs::exists("/proc/thread-self/children").unwrap_or_default());
    *LISTED
}

/// All processes of the machine, by who started them or took them over.
fn children_by_parent() -> HashMap<i32, Vec<i32>> {
    let mut all: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(parent) = parent(&String::from_utf8_lossy(&stat)) {
            all.entry(parent).or_default().push(pid);
        }
    }
    all
}

/// Behind the name: state, then parent.
fn parent(stat: &str) -> Option<i32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Processor time of these processes and of those they have waited for.
pub fn cpu_time(pids: &[i32]) -> Duration {
    let figures = pids.iter().filter_map(|&pid| stat(pid));
    let ticks = figures.map(|(_, one)| one.cpu_ticks.saturating_add(one.child_ticks));
    from_ticks(ticks.fold(0, u64::saturating_add))
}

/// Memory of these processes, what they share counted for each of them.
pub fn resident_bytes(pids: &[i32]) -> u64 {
    let sizes = pids.iter().filter_map(|&pid| status(pid));
    sizes
        .map(|status| field(&status, "VmRSS:").unwrap_or_default() << 10)
        .fold(0, u64::saturating_add)
}

/// These processes, at most `most` of them, those first that have used the most processor time.
pub fn describe_processes(pids: &[i32], most: usize) -> Vec<SandboxProcess> {
    let mut processes: Vec<SandboxProcess> = pids.iter().filter_map(|&pid| describe(pid)).collect();
    processes.sort_by(|one, other| (other.cpu_time, one.pid).cmp(&(one.cpu_time, other.pid)));
    processes.truncate(most);
    processes
}

fn describe(pid: i32) -> Option<SandboxProcess> {
    let (name, figures) = stat(pid)?;
    let status = status(pid)?;
    Some(SandboxProcess {
        pid: inner_pid(&status).unwrap_or_default(),
        name,
        cpu_time: from_ticks(figures.cpu_ticks),
        memory_bytes: field(&status, "VmRSS:").unwrap_or_default() << 10,
    })
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn stat(pid: i32) -> Option<(String, ProcessFigures)> {
    // Bytes: a process may give itself any name.
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

/// The name stands in brackets and may hold brackets itself: the last one ends it.
fn parse_stat(text: &str) -> Option<(String, ProcessFigures)> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // Behind the name: state, parent, group, session, terminal, its group, flags, four counts of faults, and
    // then the times.
    let mut numbers = after.split_whitespace().skip(11).map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (user, system, child_user, child_system) = (next()?, next()?, next()?, next()?);
    let figures = ProcessFigures {
        cpu_ticks: user.saturating_add(system),
        child_ticks: child_user.saturating_add(child_system),
    };
    Some((name.to_owned(), figures))
}

fn status(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/status")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A process has a number in every namespace that it is in, the innermost last.
fn inner_pid(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

fn from_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_no_figure() {
        let rest = "S 1 2 3 0 -1 4194560 5 6 7 8 150 50 20 10 20 0 1 0 100 4096 10";
        for name in ["bash", "a) S 9 9 9 (b", ") R 1 1 1", "", "ä\u{fffd}"] {
            let (read, figures) = parse_stat(&format!("77 ({name}) {rest}")).unwrap();
            assert_eq!(read, name);
            assert_eq!((figures.cpu_ticks, figures.child_ticks), (200, 30));
        }
        for broken in [
            "",
            "77",
            "77 (bash)",
            "77 (bash) S 1 2 3",
            ")(",
            "1 (x) S a b c",
        ] {
            assert!(parse_stat(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn the_innermost_number_is_the_one_inside() {
        assert_eq!(inner_pid("Name:\tx\nNSpid:\t4711\t33\t2\n"), Some(2));
        assert_eq!(inner_pid("Name:\tx\n"), None);
    }

    #[test]
    fn a_kernel_that_lists_no_children_tells_by_the_parents() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'echo; read -r line'; true"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Its word comes when its own child is there.
        let mut said = [0];
        let mut stdout = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout, &mut said).unwrap();
        let first = child.id().cast_signed();
        let by_parent = children_by_parent();
        let tree = descend(first, |pid| {
            by_parent.get(&pid).cloned().unwrap_or_default()
        });
        assert_eq!(tree.len(), 2, "{tree:?}");
        assert!(by_parent[&std::process::id().cast_signed()].contains(&first));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn we_are_of_our_own_tree_and_use_something() {
        let own = i32::try_from(std::process::id()).unwrap();
        let tree = process_tree(own);
        assert_eq!(tree.first(), Some(&own));
        assert!(resident_bytes(&tree) > 1 << 16);
        let told = describe_processes(&tree, 1);
        assert_eq!(told.len(), 1);
        assert!(!told[0].name.is_empty() && told[0].memory_bytes > 0);
        // Nobody has this number.
        assert_eq!(resident_bytes(&[i32::MAX]), 0);
        assert_eq!(cpu_time(&[i32::MAX]), Duration::ZERO);
        assert!(describe_processes(&[i32::MAX], 9).is_empty());
    }
}
