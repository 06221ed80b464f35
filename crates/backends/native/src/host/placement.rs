//! Where sandboxes' groups go in the unified hierarchy, and how the place is made ready.
//!
//! A group that hands controllers down may hold no process of its own, and systemd puts a service's new
//! main process into the service's group. So what has to survive a restart lives elsewhere: beside the
//! service, in a unit that is never restarted with it (`docs/decisions/0017`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Of the three that a sandbox is bounded by, in the order in which they are asked for.
pub(super) const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Which of its siblings a gateway that systemd keeps has for its sandboxes. The unit says it to its process;
/// it is a fact about where that is, as `/proc/self/cgroup` is, and no setting.
pub(super) const SANDBOXES_UNIT: &str = "HERMETIC_SANDBOXES_UNIT";

/// Where processes go that would stand in the way of handing controllers down.
const LEAF: &str = "hermetic-gateway";

/// A group whose children are sandboxes', and what it hands down to them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CgroupParent {
    pub(super) base: PathBuf,
    pub(super) controllers: Vec<&'static str>,
}

/// Finds and prepares the place for an installation called `name`, for a process in the group `own`.
/// `unit` is the sibling that was set aside for sandboxes. What went wrong comes back in words.
pub(super) fn find(own: &Path, name: &str, unit: Option<&str>) -> Result<CgroupParent, String> {
    if let Some(unit) = unit {
        let set_aside = own.parent().unwrap_or(own).join(unit);
        if !set_aside.is_dir() {
            return Err(format!(
                "{unit} does not run: {} is missing",
                set_aside.display()
            ));
        }
        // Nothing is in there but sandboxes and the process that holds it.
        return hand_down(&set_aside, name, MovableProcesses::All);
    }
    // A leaf that systemd put us into (`DelegateSubgroup=`), or that an earlier start stepped into: in a
    // container the group above has no name of its own.
    let is_leaf = |parent: &Path| {
        own.file_name().is_some_and(|name| name == LEAF)
            || (is_one_of(parent, &["service", "scope"])
                && !is_one_of(own, &["service", "scope", "slice"]))
    };
    if let Some(parent) = own.parent().filter(|parent| is_leaf(parent)) {
        return hand_down(parent, name, MovableProcesses::None);
    }
    if own.extension().is_some_and(|kind| kind == "service") {
        tracing::warn!(
            group = %own.display(),
            "systemd cannot restart this service while a sandbox lives in its cgroup; \
             `hermetic gateway install` writes a unit that keeps them apart"
        );
    }
    hand_down(own, name, MovableProcesses::Ourselves)
}

/// Which processes of a group may be moved into a leaf, so that it can hand controllers down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MovableProcesses {
    None,
    Ourselves,
    All,
}

fn hand_down(group: &Path, name: &str, movable: MovableProcesses) -> Result<CgroupParent, String> {
    let offered = fs::read_to_string(group.join("cgroup.controllers"))
        .map_err(|error| format!("{}: {error}", group.join("cgroup.controllers").display()))?;
    let controllers: Vec<&'static str> = CONTROLLERS
        .into_iter()
        .filter(|wanted| offered.split_whitespace().any(|found| found == *wanted))
        .collect();
    if controllers.is_empty() {
        return Err(format!("no controller is offered in {}", group.display()));
    }
    let asked: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    let asked = asked.join(" ");
    // Tried as it is: most often the group is ready, and nobody need be moved.
    enable(group, &asked).or_else(|error| {
        step_aside(group, movable, &error)?;
        enable(group, &asked).map_err(|error| {
            format!(
                "{}: {error}",
                group.join("cgroup.subtree_control").display()
            )
        })
    })?;
    let base = group.join(name);
    let prepared = usable(&base).and_then(|()| enable(&base, &asked));
    prepared.map_err(|error| format!("{}: {error}", base.display()))?;
    Ok(CgroupParent { base, controllers })
}

fn enable(group: &Path, controllers: &str) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), controllers)
}

/// Moves those who are in the way into a leaf; others' processes are left where they are.
fn step_aside(group: &Path, movable: MovableProcesses, refused: &io::Error) -> Result<(), String> {
    let shown = group.display();
    let members = fs::read_to_string(group.join("cgroup.procs"))
        .map_err(|error| format!("{shown}/cgroup.procs: {error}"))?;
    let own = std::process::id().to_string();
    let others = members.lines().filter(|line| *line != own).count();
    let movable = match movable {
        MovableProcesses::None => false,
        // Others' processes did not ask to be moved, and a manager that put them there finds them
        // by their group.
        MovableProcesses::Ourselves => others == 0,
        MovableProcesses::All => true,
    };
    if members.trim().is_empty() || !movable {
        return Err(match others {
            0 => format!("{shown}/cgroup.subtree_control: {refused}"),
            _ => format!("{others} other processes share the cgroup {shown}"),
        });
    }
    let leaf = group.join(LEAF);
    let moved = usable(&leaf).and_then(|()| {
        for member in members.lines() {
            match fs::write(leaf.join("cgroup.procs"), member) {
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(ESRCH) => {}
                moved => moved?,
            }
        }
        Ok(())
    });
    moved.map_err(|error| format!("cannot step aside into {}: {error}", leaf.display()))
}

const ESRCH: i32 = 3;

/// Whether systemd made it for a unit of such a kind. It makes none within a service or a scope, so a group
/// there belongs to one that was given away.
fn is_one_of(group: &Path, kinds: &[&str]) -> bool {
    let kind = group.extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| kinds.contains(&kind))
}

/// Makes a group, and makes sure that it is ours to write and not only to see: another user may have left
/// it.
pub(super) fn usable(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Existing is not enough: one left by root can be seen by a plain user, and would fail only
    // when a cage enters it.
    rustix::fs::access(group, rustix::fs::Access::WRITE_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain files where the kernel has its own; what is written there can be read again.
    fn group(folder: &Path, controllers: &str, members: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.join("cgroup.procs"), members).unwrap();
        folder.to_owned()
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// Refuses to hand controllers down, as a group with members does.
    fn refusing(folder: &Path) {
        fs::create_dir(folder.join("cgroup.subtree_control")).unwrap();
    }

    #[test]
    fn a_service_has_its_sandboxes_beside_itself_and_enables_nothing_in_its_own_group() {
        let slice = tempfile::tempdir().unwrap();
        let own = group(
            &slice.path().join("gateway.service"),
            "cpu memory pids",
            "1\n",
        );
        let aside = group(
            &slice.path().join("sandboxes.service"),
            "cpu memory pids",
            "2\n",
        );
        let found = find(&own, "hermetic-a", Some("sandboxes.service")).unwrap();
        assert_eq!(found.base, aside.join("hermetic-a"));
        assert_eq!(found.controllers, CONTROLLERS);
        assert_eq!(
            read(aside.join("cgroup.subtree_control")),
            "+cpu +memory +pids"
        );
        assert!(!own.join("cgroup.subtree_control").exists());
        assert!(!own.join(LEAF).exists());
    }

    #[test]
    fn a_sandboxes_unit_that_does_not_run_is_an_error_and_not_a_reason_to_go_elsewhere() {
        let slice = tempfile::tempdir().unwrap();
        let own = group(&slice.path().join("gateway.service"), "cpu memory pids", "");
        let why = find(&own, "hermetic-a", Some("sandboxes.service")).unwrap_err();
        assert!(why.contains("sandboxes.service does not run"), "{why}");
        assert!(!own.join("cgroup.subtree_control").exists());
    }

    #[test]
    fn who_holds_the_sandboxes_unit_is_moved_into_a_leaf() {
        let slice = tempfile::tempdir().unwrap();
        let own = group(&slice.path().join("gateway.service"), "", "");
        let aside = group(
            &slice.path().join("sandboxes.service"),
            "memory pids",
            "41\n",
        );
        refusing(&aside);
        // Still refused after the move, but by then the holder is out of the way.
        find(&own, "hermetic-a", Some("sandboxes.service")).unwrap_err();
        assert_eq!(read(aside.join(LEAF).join("cgroup.procs")), "41");
    }

    #[test]
    fn processes_of_others_stay_where_they_are_and_are_named_as_the_reason() {
        let scope = tempfile::tempdir().unwrap();
        let members = format!("7\n{}\n8\n", std::process::id());
        let own = group(
            &scope.path().join("session-1.scope"),
            "memory pids",
            &members,
        );
        refusing(&own);
        let why = find(&own, "hermetic-a", None).unwrap_err();
        assert!(why.contains("2 other processes share the cgroup"), "{why}");
        assert!(!own.join(LEAF).exists());
    }

    #[test]
    fn from_a_leaf_that_systemd_made_sandboxes_go_beside_it() {
        let slice = tempfile::tempdir().unwrap();
        let unit = group(&slice.path().join("gateway.service"), "cpu memory pids", "");
        let own = group(&unit.join("main"), "cpu memory pids", "1\n");
        let found = find(&own, "hermetic-a", None).unwrap();
        assert_eq!(found.base, unit.join("hermetic-a"));
        assert!(!own.join("cgroup.subtree_control").exists());
        // A unit in a slice is no leaf of it: what is beside it is not ours.
        let other = group(&slice.path().join("a.slice/b.scope"), "memory", "");
        let found = find(&other, "hermetic-a", None).unwrap();
        assert_eq!(found.base, other.join("hermetic-a"));
    }

    #[test]
    fn in_a_container_whoever_comes_later_finds_the_place_beside_the_leaf() {
        let root = tempfile::tempdir().unwrap();
        let first = group(root.path(), "cpu memory pids", "1\n");
        let found = find(&first, "hermetic-a", None).unwrap();
        assert_eq!(found.base, root.path().join("hermetic-a"));
        // Started by the engine beside the gateway, whose leaf it joins.
        let own = group(&root.path().join(LEAF), "cpu memory pids", "1\n9\n");
        assert_eq!(find(&own, "hermetic-a", None).unwrap(), found);
        assert!(!own.join("cgroup.subtree_control").exists());
    }

    #[test]
    fn what_a_users_systemd_does_not_hand_down_is_left_out() {
        let scope = tempfile::tempdir().unwrap();
        let own = group(&scope.path().join("a.scope"), "memory pids", "");
        let found = find(&own, "hermetic-a", None).unwrap();
        assert_eq!(found.controllers, ["memory", "pids"]);
        assert_eq!(read(own.join("cgroup.subtree_control")), "+memory +pids");
        let none = group(&scope.path().join("b.scope"), "cpuset hugetlb", "");
        assert!(find(&none, "hermetic-a", None).is_err());
    }
}
