//! What the sandbox sees: a root of its own, put together from parts that it cannot change.
//!
//! Everything is built below one fresh tmpfs by relative paths, then that becomes `/` and the old
//! root is let go. Sources are the host's; targets are only ever made in what we just mounted.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    unmount,
};
use rustix::process::{chdir, pivot_root};

use super::proc;
use super::step_failure::{FailingStep, StepFailure};
use super::sys::mounts::{MountDepth, NO_DEV, NO_SUID, READ_ONLY, restrict};
use crate::plan::{
    BindMount, CAGE_PREFIX, CagePlan, HOME, SandboxIdentity, SystemRoot, WORKSPACE,
    WorkspaceStorage,
};

/// Device nodes that are safe in anybody's hands.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The parts of the scratch space, by place and mode.
const SCRATCH_PLACES: [(&str, &str, u32); 4] = [
    ("tmp", "tmp", 0o1777),
    ("var-tmp", "var/tmp", 0o1777),
    ("run", "run", 0o755),
    ("shm", "dev/shm", 0o1777),
];

pub(crate) fn build(plan: &CagePlan) -> Result<(), StepFailure> {
    // Nothing we mount may show up outside, nor the other way round.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .step("keep mounts private")?;
    // Below the new root, where it goes away with the host's: an unmount of its own would make the
    // kernel wait for every CPU.
    let scratch = mount_scratch(plan)?;
    let options = format!("mode=0755,size={},nr_inodes=4096", 4 << 20);
    tmpfs(&plan.root, &options).step("mount the new root")?;
    chdir(&plan.root).step("enter the new root")?;

    match &plan.system {
        SystemRoot::Host { etc } => show_host(etc)?,
        SystemRoot::Rootfs(folder) => show_rootfs(folder)?,
    }
    show_devices(plan.bounds.ptys)?;
    show_scratch(plan, &scratch)?;
    show_files(plan, &scratch)?;
    // After the devices and the empty `/sys`: parts of it are covered with them.
    proc::mount_masked(&plan.bounds)?;
    // Last, as they may lie below anything shown above, and must not be covered by it.
    for wanted in &plan.binds {
        show_bind(wanted)?;
    }

    // The same place twice: the old root comes to lie on top of the new one, and no folder for it
    // is needed in what the sandbox sees.
    pivot_root(".", ".").step("pivot into the new root")?;
    // What `.` names now is that old root. Detached, as this program still runs from it and it
    // could not be unmounted.
    unmount(".", UnmountFlags::DETACH).step("let go of the host's root")?;
    // The working directory is still the old root's, and a way out of the new one.
    chdir("/").step("enter /")?;
    // Only now, as places were made in it until here; and only itself, for what is mounted below
    // has its own rules.
    restrict(
        Path::new("/"),
        READ_ONLY | NO_SUID | NO_DEV,
        MountDepth::This,
    )
    .step("make the root read-only")?;
    chdir(WORKSPACE).step("enter the workspace")
}

/// The places a sandbox may write to, as it names them.
pub(crate) fn writable(plan: &CagePlan) -> Vec<PathBuf> {
    let own = [WORKSPACE, HOME]
        .into_iter()
        .map(PathBuf::from)
        .chain(SCRATCH_PLACES.map(|(_, place, _)| Path::new("/").join(place)));
    let asked = plan
        .binds
        .iter()
        .filter(|bind| bind.writable)
        .map(|bind| bind.target.clone());
    // Landlock opens what it allows, and an image may lack `/var/tmp`.
    own.chain(asked).filter(|place| place.exists()).collect()
}

fn show_host(etc: &Path) -> Result<(), StepFailure> {
    for name in ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        show_system_part(Path::new("/"), name)?;
    }
    read_only(etc, Path::new("etc"))?;
    make_dir("var/tmp")?;
    make_dir("sys")
}

/// Every top entry of the image that is not a place of ours.
fn show_rootfs(folder: &Path) -> Result<(), StepFailure> {
    // Made anew below: an image's own would hide the sandbox's devices and files, or be written to.
    const OURS: [&str; 7] = ["dev", "proc", "sys", "tmp", "run", "home", "workspace"];
    for entry in fs::read_dir(folder).step("read the root file system")? {
        let name = entry.step("read the root file system")?.file_name();
        match name.to_str() {
            Some(name) if OURS.contains(&name) || name.starts_with(CAGE_PREFIX) => {}
            Some(name) => show_system_part(folder, name)?,
            None => {}
        }
    }
    make_dir("sys")?;
    // Not by where it leads: until the pivot a link leads into the host.
    if fs::symlink_metadata("var").is_err() {
        make_dir("var/tmp")?;
    }
    Ok(())
}

/// A folder is bound, a link is copied, anything else is no part of a system.
fn show_system_part(root: &Path, name: &str) -> Result<(), StepFailure> {
    let source = root.join(name);
    let Ok(found) = fs::symlink_metadata(&source) else {
        return Ok(());
    };
    if found.is_symlink() {
        // Copied and not followed: it leads somewhere in the sandbox's root, and here it would be
        // the host's.
        let target = fs::read_link(&source).step("read a system link")?;
        symlink(target, name).step("copy a system link")
    } else if found.is_dir() {
        read_only(&source, Path::new(name))
    } else {
        Ok(())
    }
}

fn show_devices(ptys: u32) -> Result<(), StepFailure> {
    make_dir("dev/pts")?;
    for name in DEVICES {
        // An outer container may have fewer.
        if !Path::new("/dev").join(name).exists() {
            continue;
        }
        let target = Path::new("dev").join(name);
        fs::File::create(&target).step("make a device's place")?;
        // Bound from the host: `mknod` of a device is refused to a user namespace, whoever made it.
        mount_bind_recursive(Path::new("/dev").join(name), &target)
            .step(&format!("bind /dev/{name}"))?;
    }
    mount_with(
        "devpts",
        "dev/pts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        // Its own terminals, numbered from 0: the host's are neither seen nor taken. Without
        // `ptmxmode` nobody may open the one below.
        &format!("newinstance,ptmxmode=0666,mode=0620,max={ptys}"),
    )
    .step("mount /dev/pts")?;
    for (target, link) in [
        ("pts/ptmx", "dev/ptmx"),
        ("/proc/self/fd", "dev/fd"),
        ("/proc/self/fd/0", "dev/stdin"),
        ("/proc/self/fd/1", "dev/stdout"),
        ("/proc/self/fd/2", "dev/stderr"),
    ] {
        symlink(target, link).step("link in /dev")?;
    }
    Ok(())
}

fn mount_scratch(plan: &CagePlan) -> Result<OwnedFd, StepFailure> {
    let options = format!(
        "mode=0755,size={},nr_inodes={}",
        plan.scratch.bytes, plan.scratch.inodes
    );
    tmpfs(&plan.root, &options).step("mount the scratch space")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(&plan.root, flags, Mode::empty()).step("hold the scratch space")
}

fn show_scratch(plan: &CagePlan, scratch: &OwnedFd) -> Result<(), StepFailure> {
    for (part, place, mode) in SCRATCH_PLACES {
        // An image may have a `/var` without a `tmp`, and it is read-only by now. Or it is a link, which
        // would lead into the host until the pivot.
        if make_place(Path::new(place), true).is_ok() {
            bind_scratch(plan, scratch, part, place, mode)?;
        }
    }
    Ok(())
}

fn show_files(plan: &CagePlan, scratch: &OwnedFd) -> Result<(), StepFailure> {
    make_dir("home/agent")?;
    make_dir("workspace")?;
    match &plan.files {
        WorkspaceStorage::Disk { workspace, home } => {
            show_folder(workspace, Path::new("workspace"))?;
            show_folder(home, Path::new("home/agent"))
        }
        WorkspaceStorage::Memory => {
            bind_scratch(plan, scratch, "workspace", "workspace", 0o755)?;
            bind_scratch(plan, scratch, "home", "home/agent", 0o755)
        }
    }
}

fn bind_scratch(
    plan: &CagePlan,
    scratch: &OwnedFd,
    part: &str,
    place: &str,
    mode: u32,
) -> Result<(), StepFailure> {
    let source = of_descriptor(scratch).join(part);
    fs::create_dir(&source).step("make a scratch folder")?;
    fs::set_permissions(&source, fs::Permissions::from_mode(mode)).step("open a scratch folder")?;
    if let SandboxIdentity::Assumed(id) = plan.identity {
        chown(&source, Some(id), Some(id)).step("give a scratch folder away")?;
    }
    mount_bind_recursive(&source, place).step(&format!("bind /{place}"))
}

fn show_folder(source: &Path, target: &Path) -> Result<(), StepFailure> {
    // A bind takes over the flags of its source and ignores those given with it, so that
    // restricting is a second step.
    mount_bind_recursive(source, target).step(&format!("bind /{}", target.display()))?;
    restrict(target, NO_SUID | NO_DEV, MountDepth::Tree)
        .step(&format!("restrict /{}", target.display()))
}

fn read_only(source: &Path, target: &Path) -> Result<(), StepFailure> {
    make_dir(target)?;
    mount_bind_recursive(source, target).step(&format!("bind /{}", target.display()))?;
    restrict(target, READ_ONLY | NO_SUID | NO_DEV, MountDepth::Tree)
        .step(&format!("make /{} read-only", target.display()))
}

/// A folder or file that the operator lets in. Neither end may go through a symbolic link: the
/// source could lie in what another sandbox writes, the target in what this one wrote before.
fn show_bind(wanted: &BindMount) -> Result<(), StepFailure> {
    let named = wanted.target.display();
    let here = rustix::fs::CWD;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let source = openat2(
        here,
        &wanted.source,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        strict,
    )
    .step(&format!("open the source of {named}"))?;
    let folder = rustix::fs::fstat(&source)
        .map(|found| found.st_mode & 0o170_000 == 0o040_000)
        .step(&format!("look at the source of {named}"))?;

    let inside: PathBuf = wanted
        .target
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    make_place(&inside, folder).step(&format!("make the place for {named}"))?;
    let target = openat2(
        here,
        &inside,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        strict | ResolveFlags::BENEATH,
    )
    .step(&format!("open the place for {named}"))?;

    // By the descriptors that were judged and not by their names again, which might lead elsewhere
    // by now.
    let place = of_descriptor(&target);
    mount_bind_recursive(of_descriptor(&source), &place).step(&format!("bind {named}"))?;
    let kept_out = NO_SUID | NO_DEV | if wanted.writable { 0 } else { READ_ONLY };
    // By its name, as the descriptor still means what lies below the new mount. Nobody but us is in
    // this namespace yet to change it.
    restrict(&inside, kept_out, MountDepth::Tree).step(&format!("restrict {named}"))
}

fn of_descriptor(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Part by part, so that a link planted on the way is met before it is followed.
fn make_place(path: &Path, folder: bool) -> io::Result<()> {
    let mut so_far = PathBuf::new();
    let last = path.components().count();
    for (number, part) in path.components().enumerate() {
        so_far.push(part);
        match fs::symlink_metadata(&so_far) {
            Ok(found) if found.is_symlink() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => {}
            Err(_) if number + 1 == last && !folder => {
                fs::File::create_new(&so_far)?;
            }
            Err(_) => fs::create_dir(&so_far)?,
        }
    }
    Ok(())
}

fn make_dir(path: impl AsRef<Path>) -> Result<(), StepFailure> {
    let path = path.as_ref();
    fs::create_dir_all(path).step(&format!("make /{}", path.display()))
}

fn tmpfs(target: &Path, options: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_with("tmpfs", target, flags, options)
}

fn mount_with(
    kind: &str,
    target: impl AsRef<Path>,
    flags: MountFlags,
    options: &str,
) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    mount(kind, target.as_ref(), kind, flags, Some(options.as_c_str()))?;
    Ok(())
}
