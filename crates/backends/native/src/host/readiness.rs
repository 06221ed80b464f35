//! What holds on this host, told by trying it: a sandbox is built, a command is run in it, and it is taken
//! down again.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_sandbox::{
    BackendReadiness, LayerState, NetworkMode, OwnProgram, SandboxLifeline, SandboxPersistence,
    SandboxSpec, SealLayer, SystemView,
};
use hermetic_types::{ConversationKey, SandboxId, SandboxLimits};
use rustix::process::getuid;

use super::disk_limit;
use super::native::{NativeBackend, NativeHost, RequiredLayer};
use super::surroundings::MachineSurroundings;

pub(super) async fn examine(native: &NativeBackend, host: &NativeHost) -> BackendReadiness {
    let surroundings = MachineSurroundings::of_this_machine();
    let mut layers = vec![
        SealLayer::active("machine", surroundings.to_string()),
        identity(),
    ];
    match native.try_out(&trial(host)).await {
        Ok(abi) => {
            let landlock = landlock(abi, &surroundings, host.demands(RequiredLayer::Landlock));
            layers.extend(tried(landlock));
        }
        Err(error) => layers.push(SealLayer::broken("namespaces", &error)),
    }
    layers.extend(limits(host, &surroundings));
    layers.extend([disk(native, host).await, total(host), tables()]);
    BackendReadiness { layers }
}

/// What a sandbox that was built and ran a command has shown.
fn tried(landlock: SealLayer) -> [SealLayer; 5] {
    [
        SealLayer::active(
            "namespaces",
            "user, mount, pid, ipc, uts, network and cgroup, all new",
        ),
        SealLayer::active("capabilities", "none in any set, no_new_privs"),
        SealLayer::active("seccomp", "an allowlist of system calls"),
        landlock,
        SealLayer::active("command", "started in it and heard to its end"),
    ]
}

fn limits(host: &NativeHost, surroundings: &MachineSurroundings) -> [SealLayer; 3] {
    let insisted = host.demands(RequiredLayer::CgroupLimits);
    let groups = &host.groups;
    let version = groups.version();
    let remedy = surroundings
        .groups_remedy()
        .unwrap_or_else(|| groups.remedy());
    [
        limit(
            "process limit",
            &groups.pids,
            version,
            insisted,
            "RLIMIT_NPROC in a user namespace of its own",
            &remedy,
        ),
        limit(
            SealLayer::MEMORY_LIMIT,
            &groups.memory,
            version,
            insisted,
            "counted, not kept: RLIMIT_DATA for each process, a watch that stops the sandbox at the sum, \
             System V queues and large segments refused; memory that no process has (buffers, files \
             in memory) is charged by what the host's has grown",
            &remedy,
        ),
        limit(
            "cpu limit",
            &groups.cpu,
            version,
            insisted,
            "pinned to as many CPUs as it may use, rounded up",
            &remedy,
        ),
    ]
}

/// Small enough to live in memory and to die with this process.
fn trial(host: &NativeHost) -> SandboxSpec {
    SandboxSpec {
        installation: host.config.installation.clone(),
        conversation: ConversationKey::new("doctor"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits {
            memory_bytes: 64 << 20,
            disk_bytes: 1 << 20,
            ..SandboxLimits::default()
        },
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Creator,
        lifetime: Duration::from_secs(10),
    }
}

fn identity() -> SealLayer {
    if getuid().is_root() {
        SealLayer::active(
            "identity",
            "each sandbox is a host user of its own, unused elsewhere and never root",
        )
    } else {
        SealLayer {
            name: "identity",
            state: LayerState::Weaker,
            detail: "every sandbox is the user who runs hermetic, apart by namespaces".to_owned(),
            remedy: Some("run as root for a host user per sandbox".to_owned()),
        }
    }
}

fn landlock(abi: Option<u8>, machine: &MachineSurroundings, insisted: bool) -> SealLayer {
    match abi {
        Some(abi) => SealLayer {
            name: "landlock",
            state: LayerState::Active,
            detail: format!("ABI {abi}"),
            remedy: None,
        },
        None => SealLayer {
            name: "landlock",
            state: missing(LayerState::Missing, insisted),
            detail: "this kernel has it not, or not switched on".to_owned(),
            remedy: Some(machine.landlock_remedy()),
        },
    }
}

fn limit(
    name: &'static str,
    group: &Result<std::path::PathBuf, String>,
    version: u8,
    insisted: bool,
    instead: &str,
    remedy: &str,
) -> SealLayer {
    match group {
        Ok(base) => SealLayer {
            name,
            state: LayerState::Active,
            detail: format!("cgroup version {version}, below {}", base.display()),
            remedy: None,
        },
        Err(why) => SealLayer {
            name,
            state: missing(LayerState::Weaker, insisted),
            detail: format!("{instead} ({why})"),
            remedy: Some(remedy.to_owned()),
        },
    }
}

/// What bounds memory and disk, as far as that is known without trying it.
pub(super) fn memory_and_disk(host: &NativeHost) -> Vec<SealLayer> {
    let disk = match host.project_quotas() {
        Ok(_) => SealLayer::active(SealLayer::DISK_LIMIT, QUOTA),
        Err(why) => counted(host, &why.to_string()),
    };
    let limits = limits(host, &MachineSurroundings::of_this_machine());
    let bounds = limits.into_iter().filter(SealLayer::bounds_memory_or_disk);
    bounds.chain([disk]).collect()
}

/// A quota is believed when a sandbox was stopped by it.
async fn disk(native: &NativeBackend, host: &NativeHost) -> SealLayer {
    let why = match host.project_quotas() {
        Ok(_) => match native
            .try_to_say(
                &on_disk(trial(host)),
                OwnProgram::OverfillWorkspace,
                STOPPED,
            )
            .await
        {
            Ok(()) => {
                let detail = format!("{QUOTA}; a trial was stopped by it");
                return SealLayer::active(SealLayer::DISK_LIMIT, detail);
            }
            Err(error) => error.with_causes(),
        },
        Err(why) => why.to_string(),
    };
    counted(host, &why)
}

fn counted(host: &NativeHost, why: &str) -> SealLayer {
    SealLayer {
        name: SealLayer::DISK_LIMIT,
        state: missing(LayerState::Weaker, host.demands(RequiredLayer::DiskLimit)),
        detail: format!("{COUNTED} ({why})"),
        remedy: Some(disk_limit::REMEDY.to_owned()),
    }
}

const QUOTA: &str = "kept by the kernel: a project quota for each sandbox, on bytes and on files";
const COUNTED: &str = "counted, not kept: RLIMIT_FSIZE for each file and a watch that stops the sandbox \
     within moments of passing the limit, files without a name and growth that nobody explains \
     included; exact, by a sized tmpfs, for a sandbox that keeps no files and whose disk limit is at \
     most half its memory limit";

/// The trial's limit is a mebibyte, so the second file does not fit.
const STOPPED: &str = "stopped\n";

/// The trial again, with its files on disk.
fn on_disk(trial: SandboxSpec) -> SandboxSpec {
    SandboxSpec {
        persistence: SandboxPersistence::Kept,
        ..trial
    }
}

/// What all sandboxes may use together, so that the gateway always has something left.
fn total(host: &NativeHost) -> SealLayer {
    let Ok(parent) = &host.groups.memory else {
        return SealLayer {
            name: "total limit",
            state: LayerState::Missing,
            detail: "no sum for all sandboxes together: each has its own limits only".to_owned(),
            remedy: Some(host.groups.remedy()),
        };
    };
    let settings = host.groups.total.memory(parent, host.groups.version());
    let bytes = settings
        .iter()
        .find(|setting| setting.file.contains("max") || setting.file.contains("limit"))
        .and_then(|setting| setting.value.parse::<u64>().ok())
        .unwrap_or_default();
    SealLayer::active(
        "total limit",
        format!(
            "{} MB and a bound on processes for all sandboxes together, by their common cgroup",
            bytes >> 20
        ),
    )
}

/// What one sandbox could take from everybody on the host.
fn tables() -> SealLayer {
    SealLayer::active(
        "host tables",
        "terminals and file notifications bounded for each sandbox, asynchronous I/O and huge pages \
         refused, open files and TCP buffers watched when the host runs short of them",
    )
}

fn missing(otherwise: LayerState, insisted: bool) -> LayerState {
    if insisted {
        LayerState::Required
    } else {
        otherwise
    }
}
