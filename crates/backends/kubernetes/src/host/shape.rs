//! From a spec to what the cluster is asked to make: every layer of the seal in one place.

use std::time::Duration;

use hermetic_sandbox::{
    BackendError, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::kubernetes::KubernetesConfig;
use super::label;
use super::options::PodOptions;

/// The container that commands run in, and the one that the warden comes in by.
pub(crate) const SANDBOX: &str = "sandbox";
pub(crate) const PLACE: &str = "place";

/// The warden's folder: `place` writes it, `sandbox` only reads it, so no command can replace the program.
pub(crate) const BIN: &str = "/.hermetic/bin";
const RUN: &str = "/.hermetic/run";
const SOCKET: &str = "/.hermetic/run/socket";
const WORKSPACE: &str = "/workspace";
const USER: &str = "agent";

/// Without a sign of life from the gateway for so long, a link counts as gone.
pub(crate) const LEASH: Duration = Duration::from_secs(60);
/// How long a tied sandbox waits for its creator.
const CREATOR_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the containers wait for the warden to be placed, in twentieths of a second.
const PLACE_TICKS: u32 = 2400;
/// The cluster clears a finished Job away after so long: time enough to read why it ended.
const CLEARED_AFTER: u32 = 3;
/// The warden ends what runs as soon as it is told; this is for one that cannot.
const GRACE: u32 = 5;
/// A volume of this installation that the program lies on.
const BIN_BYTES: u64 = 64 << 20;
const RUN_BYTES: u64 = 1 << 20;
/// What is requested, at the most: an idle sandbox takes little, and a node holds no more than is requested of it.
const SMALL_CPU: u64 = 100;
const SMALL_MEMORY: u64 = 256 << 20;
const SMALL_STORAGE: u64 = 64 << 20;
/// So many processes that it is no bound: where all sandboxes are one user, a count would be of them all.
const UNBOUNDED: u32 = 1 << 22;

/// The image's name, or why there cannot be such a sandbox.
pub(crate) fn check(spec: &SandboxSpec) -> Result<&str, BackendError> {
    let refused = |what: String, why: &str| BackendError::Refused {
        what,
        why: why.to_owned(),
    };
    if let Some(mount) = spec.mounts.first() {
        return Err(refused(
            format!("showing {} inside", mount.source.display()),
            "the sandbox is a pod of a cluster, which does not have that folder",
        ));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let bad = |(name, value): &(&String, &String)| {
        name.is_empty() || !name.chars().all(plain) || value.contains('\0')
    };
    if let Some((name, _)) = spec.env.iter().find(bad) {
        return Err(refused(
            format!("the variable {name:?}"),
            "a name is letters, digits, '_', '-' and '.', and a value holds no NUL byte",
        ));
    }
    match &spec.system {
        SystemView::Image(image) if !image.is_empty() => Ok(image),
        _ => Err(refused(
            "a sandbox without an image".to_owned(),
            "a cluster runs images; write terminal.kubernetes_image",
        )),
    }
}

/// The Job, whose one pod is the sandbox. It is what the cluster itself clears away.
pub(crate) fn job(
    config: &KubernetesConfig,
    spec: &SandboxSpec,
    image: &str,
    start: &str,
) -> Value {
    let labels = label::labels(spec);
    let annotations = label::annotations(spec, start);
    let deadline = config.options.deadline.as_secs().max(1);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": label::name(&spec.id), "labels": labels, "annotations": annotations,
        },
        "spec": {
            // One pod, once: a sandbox that ended is not started again behind our back.
            "backoffLimit": 0, "parallelism": 1, "completions": 1,
            "ttlSecondsAfterFinished": CLEARED_AFTER,
            "activeDeadlineSeconds": deadline,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod(config, spec, image, deadline),
            },
        },
    })
}

/// The volume of a kept sandbox.
pub(crate) fn claim(options: &PodOptions, spec: &SandboxSpec, start: &str) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": label::name(&spec.id),
            "labels": label::labels(spec),
            "annotations": label::annotations(spec, start),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": options.volume_size}},
        },
    });
    if let Some(class) = &options.storage_class {
        claim["spec"]["storageClassName"] = class.as_str().into();
    }
    claim
}

fn pod(config: &KubernetesConfig, spec: &SandboxSpec, image: &str, deadline: u64) -> Value {
    let options = &config.options;
    let user = user(options, spec);
    let mut pod = json!({
        "restartPolicy": "Never",
        "activeDeadlineSeconds": deadline,
        "terminationGracePeriodSeconds": GRACE,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        // A resolver that nobody is.
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "hostname": "sandbox",
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [
            {"name": "bin", "emptyDir": {"sizeLimit": BIN_BYTES.to_string()}},
            {"name": "run", "emptyDir": {"sizeLimit": RUN_BYTES.to_string()}},
            files(spec),
        ],
        "containers": [sandbox(config, spec, image), place(image)],
    });
    if let Some(class) = &options.runtime_class {
        pod["runtimeClassName"] = class.as_str().into();
    }
    if !options.node_selector.is_empty() {
        pod["nodeSelector"] = json!(options.node_selector);
    }
    if !options.tolerations.is_empty() {
        pod["tolerations"] = json!(options.tolerations);
    }
    if !options.image_pull_secrets.is_empty() {
        let secrets = options.image_pull_secrets.iter();
        pod["imagePullSecrets"] = secrets.map(|name| json!({"name": name})).collect();
    }
    if !options.host_users {
        pod["hostUsers"] = false.into();
    }
    pod
}

fn files(spec: &SandboxSpec) -> Value {
    match spec.persistence {
        SandboxPersistence::Ephemeral => json!({
            "name": "files", "emptyDir": {"sizeLimit": spec.limits.disk_bytes.to_string()},
        }),
        SandboxPersistence::Kept => json!({
            "name": "files", "persistentVolumeClaim": {"claimName": label::name(&spec.id)},
        }),
    }
}

fn sandbox(config: &KubernetesConfig, spec: &SandboxSpec, image: &str) -> Value {
    let own = [("HOME", WORKSPACE), ("USER", USER), ("LOGNAME", USER)];
    let own = own
        .iter()
        .filter(|(name, _)| !spec.env.contains_key(*name))
        .map(|(name, value)| json!({"name": name, "value": value}));
    // The cluster replaces `$(NAME)` in a value, and makes one dollar of two.
    let env = spec
        .env
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value.replace('$', "$$")}));
    let milli_cpu = milli_cpu(spec.limits.cpu);
    let memory = spec.limits.memory_bytes;
    let disk = spec.limits.disk_bytes;
    let options = &config.options;
    let written = |text: &Option<String>, small: String| text.clone().unwrap_or(small);
    json!({
        "name": SANDBOX,
        "image": image,
        "command": ["/bin/sh", "-c", entry(config, spec)],
        "workingDir": WORKSPACE,
        "env": own.chain(env).collect::<Vec<_>>(),
        "securityContext": container_security(),
        // The last words of one that failed, without a right to read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {
            "limits": {
                "cpu": format!("{milli_cpu}m"),
                "memory": memory.to_string(),
                "ephemeral-storage": disk.to_string(),
            },
            // Written out: else they equal the limits, and few sandboxes fill a node.
            "requests": {
                "cpu": written(&options.request_cpu, format!("{}m", milli_cpu.min(SMALL_CPU))),
                "memory": written(&options.request_memory, memory.min(SMALL_MEMORY).to_string()),
                "ephemeral-storage": written(&options.request_storage, disk.min(SMALL_STORAGE).to_string()),
            },
        },
        "volumeMounts": [
            {"name": "bin", "mountPath": BIN, "readOnly": true},
            {"name": "run", "mountPath": RUN},
            {"name": "files", "mountPath": WORKSPACE},
        ],
    })
}

/// Waits beside the sandbox until the warden lies there, and ends.
fn place(image: &str) -> Value {
    let small =
        json!({"cpu": "100m", "memory": "64Mi", "ephemeral-storage": BIN_BYTES.to_string()});
    json!({
        "name": PLACE,
        "image": image,
        // It stays a moment longer, so that the exec which placed the program can say so.
        "command": ["/bin/sh", "-c", format!("{} sleep 0.2 2>/dev/null || sleep 1", wait())],
        "workingDir": BIN,
        "env": [{"name": "HOME", "value": BIN}],
        "securityContext": container_security(),
        "resources": {
            "limits": small,
            "requests": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"},
        },
        "volumeMounts": [{"name": "bin", "mountPath": BIN}],
    })
}

fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "privileged": false,
        "capabilities": {"drop": ["ALL"]},
    })
}

fn wait() -> String {
    format!(
        "trap 'exit 0' TERM; umask 022; n=0; until [ -x {BIN}/warden ]; do n=$((n+1)); \
         [ $n -lt {PLACE_TICKS} ] || {{ echo 'nobody placed the warden' >&2; exit 69; }}; \
         sleep 0.05 2>/dev/null || sleep 1; done;"
    )
}

/// Becomes the warden by way of the look at what the pod reaches.
fn entry(config: &KubernetesConfig, spec: &SandboxSpec) -> String {
    let alone = match spec.lifeline {
        SandboxLifeline::Ledger => spec.lifetime,
        // It ends with its creator's link; this is for one who died before he had one.
        SandboxLifeline::Creator => spec.lifetime.min(CREATOR_TIMEOUT),
    };
    let tied = match spec.lifeline {
        SandboxLifeline::Creator => " --tied",
        SandboxLifeline::Ledger => "",
    };
    let processes = match config.options.user {
        Some(_) => UNBOUNDED,
        None => spec.limits.pids,
    };
    let mut words = format!(
        "--processes {processes} --files {} --settle {}",
        spec.limits.open_files,
        config.timeouts.settle.as_secs(),
    );
    for risk in &config.options.accepted {
        words += &format!(" --accept {risk}");
    }
    if let Some(api) = config
        .access
        .address()
        .filter(|api| !api.ip().is_loopback())
    {
        words += &format!(" --api {api}");
    }
    for name in spec
        .env
        .keys()
        .filter(|name| name.starts_with("KUBERNETES_"))
    {
        words += &format!(" --keep {name}");
    }
    format!(
        "{} exec {BIN}/warden pod {words} -- --listen {SOCKET} --lifetime {}{tied}",
        wait(),
        alone.as_secs().max(1),
    )
}

/// What the exec that is the link runs.
pub(crate) fn connect() -> Vec<String> {
    let leash = LEASH.as_secs().to_string();
    let warden = format!("{BIN}/warden");
    [
        &warden, "connect", "--wait", "30", "--leash", &leash, SOCKET,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A user that no other pod of the node has: processes are counted for each user of a node.
fn user(options: &PodOptions, spec: &SandboxSpec) -> u32 {
    if let Some(user) = options.user {
        return user;
    }
    let digest = Sha256::digest(spec.id.as_str().as_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    if options.host_users {
        // What Kubernetes takes ends at 2^31 - 1; what machines give to people and services is far below.
        200_000_000 + number % 1_900_000_000
    } else {
        // A user namespace of a pod holds 65536.
        10_000 + number % 50_000
    }
}

fn milli_cpu(cpu: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and the figure is a number of CPUs"
    )]
    let milli = (cpu * 1000.0) as u64;
    milli.max(10)
}
