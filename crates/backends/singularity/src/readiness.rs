//! What holds on this host, told by trying it where the image is there.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use hermetic_native::OuterContainer;
use hermetic_sandbox::{
    BackendReadiness, LayerState, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec,
    SealLayer, SystemView,
};
use hermetic_types::{ConversationKey, SandboxId, SandboxLimits};
use rustix::process::getuid;

use crate::image::ImageSource;
use crate::runtime::{ApptainerRuntime, lacking};
use crate::singularity::SingularityState;

/// A version is told at once, if at all.
const ANSWERING: Duration = Duration::from_secs(20);

pub(crate) async fn examine(host: &SingularityState) -> BackendReadiness {
    let Some(runtime) = &host.config.runtime else {
        return BackendReadiness {
            layers: vec![SealLayer::broken("runtime", &lacking())],
        };
    };
    let mut layers = vec![SealLayer::active("runtime", &version(runtime).await)];
    match ImageSource::parse(&host.config.image, &host.config.cache) {
        Err(error) => layers.push(SealLayer::broken("image", &error)),
        Ok(image @ ImageSource::There(_)) if !image.is_there() => layers.push(SealLayer {
            name: "image",
            state: LayerState::Required,
            detail: format!("{} is not there", host.config.image),
            remedy: Some("mend terminal.singularity_image".to_owned()),
        }),
        Ok(image) if !image.is_there() => layers.push(SealLayer {
            name: "image",
            state: LayerState::Active,
            detail: format!(
                "{} is built for the first sandbox; until then nothing here was tried",
                host.config.image
            ),
            remedy: None,
        }),
        Ok(_) => {
            layers.push(SealLayer::active("image", &host.config.image));
            layers.extend(tried(host).await);
        }
    }
    layers.push(identity());
    layers.extend(limits(host));
    BackendReadiness { layers }
}

/// What bounds memory and disk, as far as the runtime was seen to keep limits.
pub(crate) fn memory_and_disk(host: &SingularityState) -> Vec<SealLayer> {
    let mut layers = limits(host);
    layers.retain(SealLayer::bounds_memory_or_disk);
    layers
}

/// Whether it is worth asking the runtime for limits: it needs cgroups that it may write.
pub(crate) fn may_limit() -> bool {
    if getuid().is_root() {
        return true;
    }
    // A plain user is given cgroups by his systemd, and only where there is one hierarchy.
    let unified = fs::metadata("/sys/fs/cgroup/cgroup.controllers").is_ok();
    let session = format!("/run/user/{}/systemd", getuid().as_raw());
    unified && fs::metadata(session).is_ok()
}

async fn version(runtime: &ApptainerRuntime) -> String {
    let program = runtime.program().display().to_string();
    let mut command = tokio::process::Command::from(runtime.version_command());
    let asked = command.stdin(Stdio::null()).kill_on_drop(true).output();
    match tokio::time::timeout(ANSWERING, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let line: String = text.trim().chars().take(80).collect();
            format!("{line}, {program}")
        }
        _ => program,
    }
}

/// An instance made, sealed and taken down.
async fn tried(host: &SingularityState) -> Vec<SealLayer> {
    let spec = trial(host);
    let asked = host.instances.keeps();
    let mut made = host.native.try_out(&spec).await;
    if let Err(error) = &made
        && host.learns_from(error, asked)
    {
        made = host.native.try_out(&spec).await;
    }
    match made {
        Ok(landlock) => vec![
            SealLayer::active("instance", "started, sealed and ended"),
            SealLayer::active(
                "namespaces",
                "the runtime's, and inside them ours: user, mount, pid, ipc, uts, network, cgroup",
            ),
            SealLayer::active("network", "none but a loopback of its own"),
            SealLayer::active("capabilities", "none in any set, no_new_privs"),
            SealLayer::active(
                "seccomp",
                "our own allowlist of system calls; the runtime has none by default",
            ),
            landlock_layer(landlock),
        ],
        Err(error) => vec![SealLayer::broken("instance", &error)],
    }
}

fn trial(host: &SingularityState) -> SandboxSpec {
    SandboxSpec {
        installation: host.config.installation.clone(),
        conversation: ConversationKey::new("doctor"),
        id: SandboxId::random(),
        system: SystemView::Image(host.config.image.clone()),
        limits: SandboxLimits {
            memory_bytes: 128 << 20,
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

fn landlock_layer(abi: Option<u8>) -> SealLayer {
    match abi {
        Some(abi) => SealLayer::active("landlock", format!("ABI {abi}")),
        None => SealLayer {
            name: "landlock",
            state: LayerState::Missing,
            detail: "this kernel has it not, or not switched on".to_owned(),
            remedy: Some("a kernel since 5.13, booted with landlock in its lsm= list".to_owned()),
        },
    }
}

fn identity() -> SealLayer {
    if getuid().is_root() {
        return SealLayer::active(
            "identity",
            "each sandbox is a host user of its own, unused elsewhere and never root",
        );
    }
    SealLayer {
        name: "identity",
        state: LayerState::Weaker,
        detail: "every sandbox is the user who runs hermetic, apart by namespaces".to_owned(),
        remedy: Some("run as root for a host user per sandbox".to_owned()),
    }
}

fn limits(host: &SingularityState) -> Vec<SealLayer> {
    let kept = host.instances.keeps();
    let by = |name, kept: bool, flag: &str, instead: &str| {
        if kept {
            return SealLayer::active(name, format!("the runtime's cgroup, by {flag}"));
        }
        SealLayer {
            name,
            state: LayerState::Weaker,
            detail: format!("{instead}: the runtime cannot use cgroups here"),
            remedy: Some(
                "run as root, or as a user of systemd on a host with cgroup version 2 alone"
                    .to_owned(),
            ),
        }
    };
    vec![
        by(
            "process limit",
            kept.memory,
            "--pids-limit, and RLIMIT_NPROC",
            "RLIMIT_NPROC in a user namespace of its own",
        ),
        by(
            SealLayer::MEMORY_LIMIT,
            kept.memory,
            "--memory, without swap",
            "RLIMIT_DATA for each process, and a watch that stops the sandbox at the sum",
        ),
        by(
            "cpu limit",
            kept.cpu,
            "--cpus",
            "pinned to as many CPUs as it may use, rounded up",
        ),
        SealLayer {
            name: SealLayer::DISK_LIMIT,
            state: LayerState::Weaker,
            detail: "exact, by a sized tmpfs, for a sandbox that keeps no files and whose disk \
                     limit is at most half its memory limit; else RLIMIT_FSIZE for each file and a \
                     watch that stops the sandbox within moments of passing the limit"
                .to_owned(),
            remedy: Some(
                "container_persistent: false with a container_disk of at most half \
                 container_memory"
                    .to_owned(),
            ),
        },
    ]
}
