//! Where a process' group is: its path in a hierarchy, and that among the mounts.

use std::fs;
use std::path::{Path, PathBuf};

use super::placement;

/// The groups that bear this very process's number, in every hierarchy: made for it alone.
pub(in crate::host) fn own_of(pid: i32) -> Vec<PathBuf> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    own.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, path) = (parts.next()?, parts.next()?);
            // A group named otherwise may hold somebody else's processes too, and is not ours to
            // remove.
            if path.rsplit('/').next() != Some(pid.to_string().as_str()) {
                return None;
            }
            place(&mounts, path, |kind, options| match names {
                "" => kind == "cgroup2",
                _ => {
                    kind == "cgroup"
                        && names
                            .split(',')
                            .all(|name| options.split(',').any(|o| o == name))
                }
            })
        })
        .collect()
}

/// Our own group in the unified hierarchy, if that is where the controllers are.
pub(super) fn unified(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = place(mounts, path, |kind, _| kind == "cgroup2")?;
    // Where version 1 has them, the unified hierarchy offers none of ours, at its root or anywhere.
    let taken = placement::CONTROLLERS
        .iter()
        .any(|controller| single(own, mounts, controller).is_some());
    (!taken).then_some(folder)
}

pub(super) fn is_unified() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// Our own group in the hierarchy of one version 1 controller.
pub(super) fn single(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let named = parts.next()?.split(',').any(|name| name == controller);
        parts.next().filter(|_| named)
    })?;
    place(mounts, path, |kind, options| {
        kind == "cgroup" && options.split(',').any(|option| option == controller)
    })
}

/// Where a group's path is to be found among the mounts.
fn place(mounts: &str, path: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        if !wanted(kind, options) {
            return None;
        }
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}
