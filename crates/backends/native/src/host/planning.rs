//! Every decision about one sandbox, made once and written into its plan.

use hermetic_sandbox::{BackendError, Lifeline, Network, Persistence, Spec, SystemView};
use hermetic_types::{Limits, SandboxId};
use rustix::process::{getgid, getuid};

use super::folder::Folder;
use super::housing;
use super::mounts;
use super::native::Host;
use super::tables;
use super::writer;
use crate::plan::{Bounds, Files, HOME, Identity, PORCH, Pin, Plan, Scratch, System, WORKSPACE};

/// Ids in this range belong to nobody: above what systems hand out to users and containers.
pub(super) const FIRST_ASSUMED: u32 = 0x7000_0000;
const ASSUMED: u32 = 0x0fff_ffff;

pub(super) fn plan(host: &Host, folder: &Folder, spec: &Spec) -> Result<Plan, BackendError> {
    let limits = &spec.limits;
    let files = files(folder, spec);
    let housed = host.housing.is_some();
    let mut groups = host.groups.of(&spec.id, limits);
    if housed {
        groups.clear();
    }
    Ok(Plan {
        identity: writer::identity(spec, identity(&spec.id))?,
        root: if housed {
            PORCH.into()
        } else {
            host.mount_point()
        },
        system: if housed {
            // Whatever its root is, the house has it at hand.
            System::Rootfs("/".into())
        } else {
            system(host, spec)?
        },
        scratch: scratch(limits, &files),
        files,
        binds: spec
            .mounts
            .iter()
            .map(|mount| mounts::check(mount, &host.config.state))
            .collect::<Result<_, _>>()?,
        bounds: bounds(spec, host),
        groups,
        env: spec.env.clone(),
        lifetime: spec.lifetime,
        tied: spec.lifeline == Lifeline::Creator,
        housed,
        exit: match spec.network {
            Network::Proxied { port } => Some(port),
            Network::Closed => None,
        },
    })
}

impl Plan {
    /// The same places, as they are called inside a house.
    pub(super) fn seen_from_inside(mut self) -> Self {
        if let Files::Disk { workspace, home } = &mut self.files {
            *workspace = WORKSPACE.into();
            *home = HOME.into();
        }
        for (number, bind) in self.binds.iter_mut().enumerate() {
            bind.source = housing::place_of(number);
        }
        self
    }

    /// Who owns the sandbox's files outside, where that is not us.
    pub(super) fn owner(&self) -> Option<u32> {
        match self.identity {
            Identity::Assumed(id) => Some(id),
            Identity::Own { .. } => None,
        }
    }
}

pub(super) fn identity(id: &SandboxId) -> Identity {
    if getuid().is_root() {
        Identity::Assumed(unused_id(spread(id)))
    } else {
        Identity::Own {
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

fn system(host: &Host, spec: &Spec) -> Result<System, BackendError> {
    match &spec.system {
        SystemView::Host => Ok(System::Host {
            etc: host.etc.clone(),
        }),
        SystemView::Rootfs(folder) => {
            let folder = std::fs::canonicalize(folder)
                .map_err(|source| BackendError::failed("find the root file system", source))?;
            if super::native::overlaps(&folder, &host.config.state) {
                return Err(BackendError::Refused {
                    what: format!("the root file system {}", folder.display()),
                    why: "it would show the sandboxes' own state".to_owned(),
                });
            }
            Ok(System::Rootfs(folder))
        }
        SystemView::Image(name) => Err(BackendError::Refused {
            what: format!("the image {name:?}"),
            why: "the native backend shows the host's system or a folder (terminal.native_rootfs)"
                .to_owned(),
        }),
    }
}

/// In memory where that is affordable: a sized tmpfs is a disk limit that nothing gets around.
fn files(folder: &Folder, spec: &Spec) -> Files {
    let affordable = spec.limits.disk_bytes <= spec.limits.memory_bytes / 2;
    if spec.persistence == Persistence::Ephemeral && affordable {
        Files::Memory
    } else {
        Files::Disk {
            workspace: folder.workspace(),
            home: folder.home(),
        }
    }
}

fn scratch(limits: &Limits, files: &Files) -> Scratch {
    let on_disk = matches!(files, Files::Disk { .. });
    // Memory that no disk limit covers: fewer names in it.
    let names = if on_disk { 1 << 16 } else { 1 << 20 };
    Scratch {
        bytes: scratch_bytes(limits, on_disk),
        inodes: limits.inodes.min(names).max(LEAST),
    }
}

/// The kernel takes zero for "no limit" in both of a tmpfs's bounds.
const LEAST: u64 = 4096;

/// The size of the scratch space: the disk limit where all files lie in it, else less.
pub(super) fn scratch_bytes(limits: &Limits, on_disk: bool) -> u64 {
    let bytes = if on_disk {
        (limits.memory_bytes / 4).min(limits.disk_bytes)
    } else {
        limits.disk_bytes
    };
    bytes.max(LEAST)
}

fn bounds(spec: &Spec, host: &Host) -> Bounds {
    let limits = &spec.limits;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and the value is at least one"
    )]
    let cpus = limits.cpu.ceil().max(1.0) as usize;
    Bounds {
        open_files: u64::from(limits.open_files),
        file_bytes: limits.disk_bytes,
        processes: u64::from(limits.pids),
        data_bytes: limits.memory_bytes,
        memory_is_counted: host.bounds_memory(),
        ptys: tables::ptys(),
        inotify: tables::inotify(),
        pin: (!host.bounds_cpu()).then(|| Pin {
            cpus,
            first: spread(&spec.id) as usize,
        }),
    }
}
