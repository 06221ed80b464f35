//! Who the sandbox is: 1000 inside, and outside never host uid 0.

use std::fs;

use rustix::fs::{Gid, Uid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_keep_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::step_failure::{FailingStep, StepFailure};
use super::sys;
use crate::plan::INNER_UID;

/// Maps the user who started us. The user namespace exists already.
pub(crate) fn map_own_user(uid: u32, gid: u32) -> Result<(), StepFailure> {
    write_maps(uid, gid)
}

/// From root to an unused id, and into a user namespace that knows no other.
pub(crate) fn assume(id: u32) -> Result<(), StepFailure> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    // The groups and the group id first: with the user id goes the power to change them, and a
    // sandbox would keep root's.
    set_thread_groups(&[]).step("leave every group")?;
    set_thread_res_gid(gid, gid, gid).step("take the group id")?;
    // Kept for one step: hosts that deny user namespaces to plain users ask for a capability.
    set_keep_capabilities(true).step("keep capabilities for a step")?;
    // All three ids at once: a saved one that is still 0 would be a way back.
    set_thread_res_uid(uid, uid, uid).step("take the user id")?;
    raise_admin().step("keep the capability to make a user namespace")?;
    // A change of uid makes the process root's to look into, its id maps included.
    set_dumpable_behavior(DumpableBehavior::Dumpable).step("own our /proc entry")?;
    sys::clone::unshare(UnshareFlags::NEWUSER).step("make the user namespace")?;
    write_maps(id, id)
}

fn raise_admin() -> rustix::io::Result<()> {
    let only = CapabilitySet::SYS_ADMIN;
    set_capabilities(
        None,
        CapabilitySets {
            effective: only,
            permitted: only,
            inheritable: CapabilitySet::empty(),
        },
    )
}

fn write_maps(uid: u32, gid: u32) -> Result<(), StepFailure> {
    // The kernel takes a group map from an unprivileged process only after this: who may leave a
    // group may get at files that are closed to it.
    fs::write("/proc/self/setgroups", "deny").step("deny setgroups")?;
    fs::write("/proc/self/uid_map", format!("{INNER_UID} {uid} 1")).step("map the user id")?;
    fs::write("/proc/self/gid_map", format!("{INNER_UID} {gid} 1")).step("map the group id")
}
