//! Every decision about one sandbox, made once and written into its plan.

use hermetic_sandbox::{
    BackendError, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_types::{SandboxId, SandboxLimits};
use rustix::process::{getgid, getuid};

use super::folder::SandboxFolder;
use super::mounts;
use super::native::NativeHost;
use super::outer_container;
use super::tables;
use super::writer;
use crate::plan::{
    CONTROL_DIR, CagePlan, CpuPinning, HOME, ProcessBounds, SandboxIdentity, ScratchSpace,
    SystemRoot, WORKSPACE, WorkspaceStorage,
};

/// Ids in this range belong to nobody: above what systems hand out to users and containers.
pub(super) const FIRST_ASSUMED: u32 = 0x7000_0000;
/// The last one is then the largest number that is positive where ids are read with a sign.
const ASSUMED: u32 = 0x0fff_ffff;

pub(super) fn plan(
    host: &NativeHost,
    folder: &SandboxFolder,
    spec: &SandboxSpec,
) -> Result<CagePlan, BackendError> {
    let limits = &spec.limits;
    let files = files(folder, spec);
    let in_container = host.outer_container.is_some();
    let mut groups = host.groups.of(&spec.id, limits);
    if in_container {
        // The container's own groups bound what is in it, and the host's cannot be reached from
        // inside.
        groups.clear();
    }
    Ok(CagePlan {
        identity: writer::identity(spec, identity(&spec.id))?,
        root: if in_container {
            CONTROL_DIR.into()
        } else {
            host.mount_point()
        },
        system: if in_container {
            // Whatever its root is, the outer container has it at hand.
            SystemRoot::Rootfs("/".into())
        } else {
            system(host, spec)?
        },
        scratch: scratch(limits, &files),
        files,
        binds: mounts::check_all(&spec.mounts, &host.config.state)?,
        bounds: bounds(spec, host),
        groups,
        env: spec.env.clone(),
        lifetime: spec.lifetime,
        tied: spec.lifeline == SandboxLifeline::Creator,
        in_container,
        // In an outer container it is one that was put there.
        program_is_file: in_container || host.program.is_file(),
        exit: match spec.network {
            NetworkMode::Proxied { port } => Some(port),
            NetworkMode::Closed => None,
        },
    })
}

impl CagePlan {
    /// The same places, as they are called inside an outer container.
    pub(super) fn seen_from_inside(mut self) -> Self {
        if let WorkspaceStorage::Disk { workspace, home } = &mut self.files {
            *workspace = WORKSPACE.into();
            *home = HOME.into();
        }
        for (number, bind) in self.binds.iter_mut().enumerate() {
            bind.source = outer_container::place_of(number);
        }
        self
    }

    /// Who owns the sandbox's files outside, where that is not us.
    pub(super) fn owner(&self) -> Option<u32> {
        match self.identity {
            SandboxIdentity::Assumed(id) => Some(id),
            SandboxIdentity::Own { .. } => None,
        }
    }
}

pub(super) fn identity(id: &SandboxId) -> SandboxIdentity {
    if getuid().is_root() {
        SandboxIdentity::Assumed(unused_id(spread(id)))
    } else {
        SandboxIdentity::Own {
            uid: getuid().as_raw(),
            gid: getgid().as_raw(),
        }
    }
}

/// A number of that range, for users and for projects of a file system.
pub(super) fn unused_id(spread: u32) -> u32 {
    FIRST_ASSUMED + (spread & ASSUMED)
}

/// FNV-1a: the same id always gives the same user, so a resumed sandbox owns its files.
pub(super) fn spread(id: &SandboxId) -> u32 {
    id.as_str().bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn system(host: &NativeHost, spec: &SandboxSpec) -> Result<SystemRoot, BackendError> {
    match &spec.system {
        SystemView::Host => Ok(SystemRoot::Host {
            etc: host.etc.clone(),
        }),
        SystemView::Rootfs(folder) => {
            let found = std::fs::canonicalize(folder);
            let folder = found.map_err(|error| BackendError::Refused {
                what: format!("the root file system {}", folder.display()),
                why: format!("it cannot be found ({error})"),
            })?;
            if super::native::overlaps(&folder, &host.config.state) {
                return Err(BackendError::Refused {
                    what: format!("the root file system {}", folder.display()),
                    why: "it would show the sandboxes' own state".to_owned(),
                });
            }
            Ok(SystemRoot::Rootfs(folder))
        }
        SystemView::Image(name) => Err(BackendError::Refused {
            what: format!("the image {name:?}"),
            why: "the native backend shows the host's system or a folder (terminal.native_rootfs)"
                .to_owned(),
        }),
    }
}

/// In memory where that is affordable: a sized tmpfs is a disk limit that nothing gets around.
fn files(folder: &SandboxFolder, spec: &SandboxSpec) -> WorkspaceStorage {
    let affordable = spec.limits.disk_bytes <= spec.limits.memory_bytes / 2;
    if spec.persistence == SandboxPersistence::Ephemeral && affordable {
        WorkspaceStorage::Memory
    } else {
        WorkspaceStorage::Disk {
            workspace: folder.workspace(),
            home: folder.home(),
        }
    }
}

fn scratch(limits: &SandboxLimits, files: &WorkspaceStorage) -> ScratchSpace {
    let on_disk = matches!(files, WorkspaceStorage::Disk { .. });
    // Memory that no disk limit covers: fewer names in it.
    let names = if on_disk { 1 << 16 } else { 1 << 20 };
    ScratchSpace {
        bytes: scratch_bytes(limits, on_disk),
        inodes: limits.inodes.min(names).max(LEAST_TMPFS_BOUND),
    }
}

/// The kernel takes zero for "no limit" in both of a tmpfs's bounds.
const LEAST_TMPFS_BOUND: u64 = 4096;

/// The size of the scratch space: the disk limit where all files lie in it, else less.
pub(super) fn scratch_bytes(limits: &SandboxLimits, on_disk: bool) -> u64 {
    let bytes = if on_disk {
        // A tmpfs is memory: filled to the brim it must leave the sandbox's programs most of
        // theirs.
        (limits.memory_bytes / 4).min(limits.disk_bytes)
    } else {
        limits.disk_bytes
    };
    bytes.max(LEAST_TMPFS_BOUND)
}

fn bounds(spec: &SandboxSpec, host: &NativeHost) -> ProcessBounds {
    let limits = &spec.limits;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and the value is at least one"
    )]
    let cpus = limits.cpu.ceil().max(1.0) as usize;
    ProcessBounds {
        open_files: u64::from(limits.open_files),
        file_bytes: limits.disk_bytes,
        processes: u64::from(limits.pids),
        data_bytes: limits.memory_bytes,
        memory_is_counted: host.bounds_memory(),
        ptys: tables::ptys(),
        inotify: tables::inotify(),
        pin: (!host.bounds_cpu()).then(|| CpuPinning {
            cpus,
            first: spread(&spec.id) as usize,
        }),
    }
}
