//! From a spec to what the engine is asked to make: every layer of the seal in one place.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};
use hermetic_sandbox::{
    BackendError, HostMount, MountMode, SandboxLifeline, SandboxPersistence, SandboxSpec,
};
use hermetic_types::{SandboxLimits, Secret};

use crate::archive::{self, ContainerUserKind};
use crate::engine::EngineFacts;
use crate::extra::ExtraFlags;
use crate::image::ImageFacts;
use crate::label;
use crate::user::{ContainerUser, whose};
use crate::volume::{ContainerVolume, VolumeError};

/// How containers are, beyond what every sandbox's spec says.
#[derive(Clone, Debug, Default)]
pub struct ContainerOptions {
    pub user: ContainerUser,
    pub root: RootView,
    /// An OCI runtime that the engine knows, such as `runsc`.
    pub runtime: Option<String>,
    /// Variables of every container. Not part of a spec, which is written into the ledger.
    pub env: BTreeMap<String, Secret>,
    pub volumes: Vec<ContainerVolume>,
    pub extra: ExtraFlags,
    pub seal: ContainerSeal,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootView {
    #[default]
    Writable,
    ReadOnly,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerSeal {
    /// Loopback and nothing else.
    #[default]
    Whole,
    /// The engine's own bridge: the operator wrote it, and was warned.
    BrokenByNetwork,
}

/// Writable without a disk: as large as Hermes users know them.
const SCRATCH: [(&str, u64, &str); 3] = [
    ("/tmp", 512 << 20, "exec"),
    ("/var/tmp", 256 << 20, "noexec"),
    ("/run", 64 << 20, "noexec"),
];
/// The least that tmpfs takes for a size; zero would be no limit.
const PAGE: u64 = 4096;

/// What a user is called whom the image does not know.
const STRANGER: &str = "agent";

/// How long a tied sandbox waits for its creator.
const DOCKER_CREATOR_TIMEOUT: Duration = Duration::from_secs(20);

/// What the engine is asked to make of an image that our layer is on.
pub(crate) fn shape(
    options: &ContainerOptions,
    spec: &SandboxSpec,
    layered: &str,
    picture: &ImageFacts,
    facts: &EngineFacts,
) -> Result<ContainerCreateBody, BackendError> {
    check(options, spec)?;
    let mut body = ContainerCreateBody {
        image: Some(layered.to_owned()),
        hostname: Some("hermetic".to_owned()),
        user: options.user.name(&spec.id, picture, facts),
        env: Some(env(options, spec, picture)?),
        entrypoint: Some(vec![archive::WARDEN.to_owned()]),
        cmd: Some(serve(spec, facts)),
        // The first link. Whose end closes stdin, also when it is killed.
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        working_dir: Some(archive::WORKSPACE.to_owned()),
        stop_signal: Some("SIGTERM".to_owned()),
        // An image's own check would be a command that nobody judged.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host(options, spec, picture, facts)),
        ..ContainerCreateBody::default()
    };
    // The operator's flags, then our labels once more: nothing may pose as another sandbox, or as
    // none of ours.
    options.extra.apply(&mut body);
    body.labels.get_or_insert_default().extend(label::of(spec));
    Ok(body)
}

/// Who the container's processes will be.
pub(crate) fn whose_of(
    options: &ContainerOptions,
    spec: &SandboxSpec,
    picture: &ImageFacts,
    facts: &EngineFacts,
) -> ContainerUserKind {
    let mut body = ContainerCreateBody {
        user: options.user.name(&spec.id, picture, facts),
        ..ContainerCreateBody::default()
    };
    // By the same flags that the container gets: whoever it will really be has to be able to write
    // there.
    options.extra.apply(&mut body);
    whose(body.user.as_deref().or(picture.user.as_deref()))
}

fn check(options: &ContainerOptions, spec: &SandboxSpec) -> Result<(), BackendError> {
    if options.root == RootView::ReadOnly && spec.persistence == SandboxPersistence::Kept {
        return Err(BackendError::Refused {
            what: "a read-only root that keeps its files".to_owned(),
            why: "files are kept in the root; write container_persistent: false, or leave \
                  docker_read_only out"
                .to_owned(),
        });
    }
    Ok(())
}

fn serve(spec: &SandboxSpec, facts: &EngineFacts) -> Vec<String> {
    let alone = match spec.lifeline {
        SandboxLifeline::Ledger => spec.lifetime,
        // It ends with its creator's link; this is for one who died before he had one.
        SandboxLifeline::Creator => spec.lifetime.min(DOCKER_CREATOR_TIMEOUT),
    };
    let lifetime = alone.as_secs().to_string();
    let mut words = vec!["sealed".to_owned()];
    // Podman without root forgets the limits of processes that it was asked for, and says nothing.
    if facts.is_rootless {
        let (files, bytes) = (spec.limits.open_files, spec.limits.disk_bytes);
        words.extend(["--limits".to_owned(), format!("{files}:{bytes}")]);
    }
    let rest = [
        "serve",
        "--listen",
        archive::SOCKET,
        "--stdio",
        "--lifetime",
        &lifetime,
    ];
    words.extend(rest.map(str::to_owned));
    if spec.lifeline == SandboxLifeline::Creator {
        words.push("--tied".to_owned());
    }
    words
}

fn env(
    options: &ContainerOptions,
    spec: &SandboxSpec,
    picture: &ImageFacts,
) -> Result<Vec<String>, BackendError> {
    let mut all: BTreeMap<&str, &str> = BTreeMap::new();
    if options.user.is_stranger_to(picture) {
        // Programs that ask the image who they are hear nothing.
        all.extend([
            ("HOME", archive::WORKSPACE),
            ("USER", STRANGER),
            ("LOGNAME", STRANGER),
        ]);
    }
    let of_all = options.env.iter();
    all.extend(of_all.map(|(name, value)| (name.as_str(), value.expose())));
    all.extend(
        // What the spec says comes last and wins: it is about this sandbox, the others about every
        // one.
        spec.env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let bad = all.iter().find(|(name, value)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    });
    if let Some((name, _)) = bad {
        return Err(BackendError::Refused {
            what: format!("the variable {name:?}"),
            why: "a name holds no '=' and neither side a NUL byte".to_owned(),
        });
    }
    Ok(all
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect())
}

fn host(
    options: &ContainerOptions,
    spec: &SandboxSpec,
    picture: &ImageFacts,
    facts: &EngineFacts,
) -> HostConfig {
    let limits = &spec.limits;
    let memory = signed(limits.memory_bytes);
    let closed = options.seal == ContainerSeal::Whole;
    HostConfig {
        network_mode: Some(if closed { "none" } else { "bridge" }.to_owned()),
        // The engine would copy the host's resolvers and search domains into the container.
        dns: closed.then(|| vec!["127.0.0.1".to_owned()]),
        dns_search: closed.then(|| vec![".".to_owned()]),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        // Or the host's tree of groups could be read from inside, with the names of everybody's
        // containers.
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        ipc_mode: Some("private".to_owned()),
        readonly_rootfs: Some(options.root == RootView::ReadOnly),
        runtime: options.runtime.clone(),
        pids_limit: Some(i64::from(limits.pids)),
        memory: Some(memory),
        // The same figure for memory and swap together: no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(nano_cpus(limits.cpu, facts.cpus)),
        ulimits: Some(ulimits(limits)),
        storage_opt: facts
            .may_size
            .then(|| HashMap::from([("size".to_owned(), limits.disk_bytes.to_string())])),
        tmpfs: Some(tmpfs(options, spec, picture, facts)),
        binds: Some(binds(options, spec)),
        // Nothing of what the warden says belongs into a log of the engine's.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        // One that ends by itself leaves nothing, also when nobody is there to see it.
        auto_remove: Some(spec.persistence == SandboxPersistence::Ephemeral),
        init: Some(false),
        ..HostConfig::default()
    }
}

fn ulimits(limits: &SandboxLimits) -> Vec<ResourcesUlimits> {
    let files = i64::from(limits.open_files);
    [
        ("nofile", files),
        ("core", 0),
        ("fsize", signed(limits.disk_bytes)),
    ]
    .into_iter()
    .map(|(name, value)| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    })
    .collect()
}

fn tmpfs(
    options: &ContainerOptions,
    spec: &SandboxSpec,
    picture: &ImageFacts,
    facts: &EngineFacts,
) -> HashMap<String, String> {
    let limits = &spec.limits;
    let least = |bytes: u64| {
        bytes
            .min(limits.disk_bytes)
            .min(limits.memory_bytes / 2)
            .max(PAGE)
    };
    let inodes = limits.inodes.clamp(64, 1 << 20);
    let sized = |bytes: u64, exec: &str| {
        format!("rw,nosuid,nodev,{exec},size={bytes},nr_inodes={inodes},mode=1777")
    };
    let mut mounts: HashMap<String, String> = SCRATCH
        .into_iter()
        .map(|(path, bytes, exec)| (path.to_owned(), sized(least(bytes), exec)))
        .collect();
    let mut add = |path: &str, bytes: u64| {
        mounts.insert(path.to_owned(), sized(bytes, "exec"));
    };
    // What an image declares as a volume would be a disk of its own that nobody bounds.
    for path in &picture.volumes {
        add(path, least(u64::MAX));
    }
    if options.root == RootView::ReadOnly {
        add(
            archive::WORKSPACE,
            limits.disk_bytes.min(limits.memory_bytes).max(PAGE),
        );
        add("/root", least(256 << 20));
        let mode = whose_of(options, spec, picture, facts).run_mode();
        let socket = format!("rw,nosuid,nodev,noexec,size={PAGE},nr_inodes=16,mode={mode:o}");
        mounts.insert(archive::RUN.to_owned(), socket);
    } else if workspace_in_memory(spec) {
        add(archive::WORKSPACE, limits.disk_bytes.max(PAGE));
    }
    // A folder of the user's takes the place of ours: an engine refuses two mounts at one path.
    for target in targets(options, spec) {
        mounts.remove(target.trim_end_matches('/'));
    }
    mounts
}

/// A sized tmpfs is a disk limit that nothing gets around, where memory can afford it.
pub(crate) fn workspace_in_memory(spec: &SandboxSpec) -> bool {
    spec.persistence == SandboxPersistence::Ephemeral
        && spec.limits.disk_bytes <= spec.limits.memory_bytes / 2
}

/// Where something of the user's is shown.
fn targets<'a>(
    options: &'a ContainerOptions,
    spec: &'a SandboxSpec,
) -> impl Iterator<Item = &'a str> {
    let volumes = options.volumes.iter().map(ContainerVolume::target);
    let mounts = spec.mounts.iter();
    volumes.chain(mounts.filter_map(|mount| mount.target.to_str()))
}

fn binds(options: &ContainerOptions, spec: &SandboxSpec) -> Vec<String> {
    let taken: Vec<_> = spec
        .mounts
        .iter()
        .filter_map(|m| m.target.to_str())
        .collect();
    let mut binds: Vec<String> = options
        .volumes
        .iter()
        .filter(|volume| !taken.contains(&volume.target()))
        .map(ToString::to_string)
        .collect();
    binds.extend(spec.mounts.iter().map(bind));
    binds
}

fn bind(mount: &HostMount) -> String {
    let mode = match mount.mode {
        MountMode::ReadOnly => "ro",
        MountMode::ReadWrite => "rw",
    };
    format!(
        "{}:{}:{mode}",
        mount.source.display(),
        mount.target.display()
    )
}

/// As a volume, so that both kinds are judged by the same rules.
pub(crate) fn volume_of(mount: &HostMount) -> Result<ContainerVolume, VolumeError> {
    ContainerVolume::parse(&bind(mount)).and_then(|volume| {
        volume.ok_or_else(|| VolumeError::Malformed {
            text: mount.source.display().to_string(),
        })
    })
}

/// An engine refuses more CPUs than it has, which is no bound anyway.
fn nano_cpus(cpus: f64, there: Option<i64>) -> i64 {
    const NANO: f64 = 1e9;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast saturates, and the figure is a number of CPUs"
    )]
    let wanted = (cpus * NANO) as i64;
    let most = there.map_or(i64::MAX, |there| there.saturating_mul(1_000_000_000));
    wanted.clamp(10_000_000, most.max(10_000_000))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
