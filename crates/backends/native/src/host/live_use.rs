//! What sandboxes use at this moment: by their cgroups, and by their processes where there are none.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_sandbox::host::{cpu_time, describe_processes, process_tree};
use hermetic_sandbox::{LiveUse, SandboxProcess};
use hermetic_types::SandboxId;

use super::folder::SandboxFolder;
use super::memory;

/// Those of them that run.
pub(super) fn live_use(folders: &[SandboxFolder]) -> HashMap<SandboxId, LiveUse> {
    let uses = folders.iter().filter_map(|folder| {
        let record = folder.record()?;
        let (life, _alive) = record.living()?;
        let groups = &record.made.groups;
        let mut counted = by_groups(groups);
        if counted.cpu_time.is_none() || counted.memory_bytes.is_none() || counted.pids.is_none() {
            let tree = process_tree(life.pid);
            let limit = record.spec.limits.memory_bytes;
            counted.cpu_time = counted.cpu_time.or_else(|| Some(cpu_time(&tree)));
            counted.memory_bytes = counted.memory_bytes.or_else(|| {
                let held = memory::resident(&tree, limit);
                Some(held.own.saturating_add(held.shared))
            });
            counted.pids = counted.pids.or(Some(tree.len() as u64));
        }
        Some((folder.id.clone(), counted))
    });
    uses.collect()
}

/// What runs in one that runs.
pub(super) fn processes(folder: &SandboxFolder, most: usize) -> Option<Vec<SandboxProcess>> {
    let record = folder.record()?;
    let (life, _alive) = record.living()?;
    Some(describe_processes(&process_tree(life.pid), most))
}

/// Each figure by the first group that has it: one group has all of them in version 2, each controller has
/// its own in version 1.
fn by_groups(groups: &[PathBuf]) -> LiveUse {
    let first = |of: fn(&Path) -> Option<u64>| groups.iter().find_map(|group| of(group));
    LiveUse {
        cpu_time: first(cpu_micros).map(Duration::from_micros),
        memory_bytes: first(memory_bytes),
        pids: first(|group| number(&group.join("pids.current"))),
    }
}

fn cpu_micros(group: &Path) -> Option<u64> {
    let version_2 = fs::read_to_string(group.join("cpu.stat")).ok();
    let micros = version_2.and_then(|text| field(&text, "usage_usec"));
    micros.or_else(|| Some(number(&group.join("cpuacct.usage"))? / 1000))
}

/// Less the files that nobody has used lately: the kernel gives those up before anything hits the limit.
fn memory_bytes(group: &Path) -> Option<u64> {
    let (used, reclaimed_first) = match number(&group.join("memory.current")) {
        Some(used) => (used, "inactive_file"),
        None => (
            number(&group.join("memory.usage_in_bytes"))?,
            "total_inactive_file",
        ),
    };
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    Some(used.saturating_sub(field(&text, reclaimed_first).unwrap_or_default()))
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn one_group_of_version_2_tells_all() {
        let unified = group(&[
            (
                "cpu.stat",
                "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n",
            ),
            ("memory.current", "1000000\n"),
            ("memory.stat", "anon 5\nfile 400000\ninactive_file 300000\n"),
            ("pids.current", "7\n"),
        ]);
        let told = by_groups(&[unified.path().to_owned()]);
        assert_eq!(told.cpu_time, Some(Duration::from_millis(2500)));
        assert_eq!((told.memory_bytes, told.pids), (Some(700_000), Some(7)));
    }

    #[test]
    fn groups_of_version_1_tell_a_figure_each_and_a_missing_one_is_not_made_up() {
        let pids = group(&[("pids.current", "3\n")]);
        let memory = group(&[
            ("memory.usage_in_bytes", "5000"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 9000\n"),
        ]);
        // The scheduler's own file has no time in version 1.
        let cpu = group(&[("cpu.stat", "nr_periods 0\nnr_throttled 0\n")]);
        let all = [&pids, &memory, &cpu].map(|group| group.path().to_owned());
        let told = by_groups(&all);
        assert_eq!((told.pids, told.memory_bytes), (Some(3), Some(0)));
        assert_eq!(told.cpu_time, None);
        let gone = by_groups(&[PathBuf::from("/nowhere")]);
        assert_eq!(gone, LiveUse::default());
    }
}
