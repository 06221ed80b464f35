//! What the gateway asks of a fresh process, and what that one reports.
//!
//! Everything that is a decision (which folders, which limits, by which means) is made before this
//! is sent: the cage has no policy of its own, so there is one place to read it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(feature = "cage")]
/// The user every sandbox sees itself as, whoever it is outside.
pub(crate) const INNER_UID: u32 = 1000;
pub(crate) const WORKSPACE: &str = "/workspace";
pub(crate) const HOME: &str = "/home/agent";

/// The folder in an outer container through which a cage reaches its gateway, and later its mount point.
pub(crate) const CONTROL_DIR: &str = "/.hermetic";
/// The socket in that folder to which a cage connects.
pub(crate) const CAGE_LISTENER: &str = "door";
#[cfg(feature = "cage")]
/// The beginning of the names of everything that an outer container holds for its cage alone.
pub(crate) const CAGE_PREFIX: &str = ".hermetic";

/// All that a cage is told: what to build, with which limits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CagePlan {
    pub identity: SandboxIdentity,
    /// An empty folder outside that the new root is mounted on.
    pub root: PathBuf,
    pub system: SystemRoot,
    pub files: WorkspaceStorage,
    pub scratch: ScratchSpace,
    pub binds: Vec<BindMount>,
    pub groups: Vec<CgroupPlan>,
    pub bounds: ProcessBounds,
    pub env: BTreeMap<String, String>,
    pub lifetime: Duration,
    /// The sandbox dies with the gateway's end of the control socket.
    pub tied: bool,
    /// It is built inside an outer container, which ends with it.
    pub in_container: bool,
    /// The cage's own program is a file, and no memory that paths do not lead to.
    pub program_is_file: bool,
    /// The port on its loopback by which it leaves.
    pub exit: Option<u16>,
}

/// The user that a sandbox is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SandboxIdentity {
    /// We are root: the sandbox becomes this host id, never 0; one that nobody has, unless it writes
    /// to somebody's folder.
    Assumed(u32),
    /// We are a plain user, and so is the sandbox.
    Own { uid: u32, gid: u32 },
}

/// The system that a sandbox sees.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SystemRoot {
    /// The host's system folders, with this folder as `/etc`.
    Host {
        etc: PathBuf,
    },
    Rootfs(PathBuf),
}

/// The place of `/workspace` and `/home/agent`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkspaceStorage {
    Disk {
        workspace: PathBuf,
        home: PathBuf,
    },
    /// In the scratch space, whose size is then the disk limit.
    Memory,
}

/// The one tmpfs behind `/tmp`, `/var/tmp`, `/run` and `/dev/shm`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScratchSpace {
    pub bytes: u64,
    pub inodes: u64,
}

/// A folder of the host that the operator lets in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BindMount {
    /// Free of symbolic links; the cage refuses to follow one.
    pub source: PathBuf,
    pub target: PathBuf,
    pub writable: bool,
}

/// A cgroup to make, set and enter, in this order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CgroupPlan {
    pub folder: PathBuf,
    /// For the group above, which all sandboxes of the installation share. Whoever makes it sets it:
    /// it goes when the last sandbox does.
    pub shared: Vec<CgroupSetting>,
    pub settings: Vec<CgroupSetting>,
    /// The file that counts kills for memory.
    pub oom_counter: Option<String>,
}

/// A value to be written to a file of a cgroup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CgroupSetting {
    pub file: String,
    pub value: String,
    /// Whether the sandbox may run where the kernel has no such file.
    pub required: bool,
}

/// The limits that a cage sets by itself, besides those of its cgroups.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessBounds {
    pub open_files: u64,
    pub file_bytes: u64,
    pub processes: u64,
    /// Private memory of one process.
    pub data_bytes: u64,
    /// A cgroup counts memory that belongs to no process as well.
    pub memory_is_counted: bool,
    /// Terminals, of the host's.
    pub ptys: u32,
    /// What the sandbox may have of its user's share of the host's file notifications, where that
    /// user is not its own.
    pub inotify: Option<InotifyBounds>,
    /// Pin to this many CPUs, where no cgroup bounds the time.
    pub pin: Option<CpuPinning>,
}

/// The share of file notifications.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InotifyBounds {
    pub instances: u64,
    pub watches: u64,
}

/// The CPUs to run on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CpuPinning {
    pub cpus: usize,
    /// Where to start counting, so that sandboxes spread.
    pub first: usize,
}

/// What comes back over the control socket.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CageReport {
    /// Pid 1 exists; its pidfd travels with this, and says its number to whoever asks.
    Born,
    /// Sealed, and serving as soon as [`GO`] has come; the exit, where the plan has one, travels with this.
    Ready {
        landlock: Option<u8>,
    },
    Failed {
        step: String,
        errno: i32,
    },
}

/// Sent when the gateway has written down whom it started.
pub(crate) const GO: &[u8] = b"go";

/// A plan that is larger is refused before anything is started.
pub(crate) const MAX_MESSAGE: usize = 128 << 10;
