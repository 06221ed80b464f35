//! Containers and clusters.

mod mounts;

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
pub(crate) use mounts::as_on_the_host;
use mounts::{mounts, wide_mount};

const ENGINES: &[&str] = &["docker", "podman", "nerdctl"];

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        ENGINES,
        &["kill"],
        HarmCategory::Container,
        "stops or deletes containers or images",
    ),
    // Without force an engine refuses what is in use.
    HarmfulAct::new(
        ENGINES,
        &["rm|rmi"],
        HarmCategory::Container,
        "stops or deletes containers or images",
    )
    .with(&["-f", "--force", "-v", "--volumes", "-a", "--all"]),
    HarmfulAct::new(
        ENGINES,
        &["container", "rm|kill"],
        HarmCategory::Container,
        "stops or deletes containers",
    ),
    HarmfulAct::new(
        ENGINES,
        &["image", "rm"],
        HarmCategory::Container,
        "deletes images",
    )
    .with(&["-f", "--force"]),
    HarmfulAct::new(
        ENGINES,
        &["image", "prune"],
        HarmCategory::Container,
        "deletes images",
    )
    .with(&["-a", "--all"]),
    HarmfulAct::new(
        ENGINES,
        &[
            "volume|network|buildx|secret|config|context|plugin|node|service|stack",
            "rm|prune|remove",
        ],
        HarmCategory::Container,
        "deletes what containers keep",
    ),
    HarmfulAct::new(
        ENGINES,
        &["system", "prune|reset"],
        HarmCategory::Container,
        "deletes everything that is not running",
    ),
    HarmfulAct::new(
        ENGINES,
        &["swarm", "leave|init|join"],
        HarmCategory::Container,
        "changes a cluster",
    ),
    HarmfulAct::new(
        &["docker", "podman", "nerdctl"],
        &["compose", "rm|kill"],
        HarmCategory::Container,
        "stops or deletes containers",
    ),
    HarmfulAct::new(
        &["docker", "podman", "nerdctl"],
        &["compose", "down"],
        HarmCategory::Container,
        "deletes what containers keep",
    )
    .with(&["-v", "--volumes", "--rmi"]),
    HarmfulAct::new(
        &["docker-compose", "podman-compose"],
        &["down"],
        HarmCategory::Container,
        "deletes what containers keep",
    )
    .with(&["-v", "--volumes", "--rmi"]),
    HarmfulAct::new(
        &["docker-compose", "podman-compose"],
        &["rm|kill"],
        HarmCategory::Container,
        "stops or deletes containers",
    ),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["delete|drain|cordon|taint|evict|replace"],
        HarmCategory::Container,
        "deletes or empties something in a cluster",
    )
    .unless(&["--dry-run"]),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["scale"],
        HarmCategory::Container,
        "stops something in a cluster",
    )
    .with(&["--replicas=0"]),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["label|annotate"],
        HarmCategory::Privilege,
        "changes what a cluster lets its pods do",
    )
    .with(&[
        "pod-security.kubernetes.io/enforce=privileged",
        "pod-security.kubernetes.io/enforce-",
        "pod-security.kubernetes.io/enforce=baseline",
    ]),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["debug", "node/*|node"],
        HarmCategory::Privilege,
        "runs with the rights of a node",
    ),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["rollout", "undo"],
        HarmCategory::Container,
        "takes back a change in a cluster",
    ),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &[
            "create|set|adm",
            "clusterrolebinding|rolebinding|policy|serviceaccount",
        ],
        HarmCategory::Privilege,
        "changes who may do what in a cluster",
    ),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["patch|edit"],
        HarmCategory::Container,
        "changes something in a cluster",
    )
    .unless(&["--dry-run"]),
    HarmfulAct::new(
        &["kubectl", "oc"],
        &["run|debug"],
        HarmCategory::Privilege,
        "runs with the rights of a node",
    )
    .with(&["--privileged", "--profile=sysadmin"]),
    HarmfulAct::new(
        &["helm"],
        &["uninstall|delete|rollback|del"],
        HarmCategory::Container,
        "deletes a release",
    )
    .unless(&["--dry-run"]),
    HarmfulAct::new(
        &["etcdctl"],
        &["del|snapshot"],
        HarmCategory::Container,
        "changes a cluster's memory",
    ),
    HarmfulAct::new(
        &["kubeadm"],
        &["reset"],
        HarmCategory::Container,
        "takes a node apart",
    ),
    HarmfulAct::new(
        &["k3s-uninstall.sh", "k3s-killall.sh"],
        &[],
        HarmCategory::Container,
        "takes a cluster apart",
    ),
    HarmfulAct::new(
        &["kind", "minikube", "k3d"],
        &["delete"],
        HarmCategory::Container,
        "deletes a cluster",
    ),
    HarmfulAct::new(
        &["kind", "k3d"],
        &["cluster", "delete"],
        HarmCategory::Container,
        "deletes a cluster",
    ),
    HarmfulAct::new(
        &["vagrant"],
        &["destroy"],
        HarmCategory::Container,
        "deletes a machine",
    ),
    HarmfulAct::new(
        &["virsh"],
        &["destroy|undefine|vol-delete|pool-delete|shutdown|reboot|snapshot-delete"],
        HarmCategory::Container,
        "stops or deletes a machine",
    ),
    HarmfulAct::new(
        &["lxc", "incus", "multipass"],
        &["delete|stop|purge"],
        HarmCategory::Container,
        "stops or deletes a container",
    ),
    HarmfulAct::new(
        &["lxc-destroy", "lxc-stop"],
        &[],
        HarmCategory::Container,
        "stops or deletes a container",
    ),
    HarmfulAct::new(
        &["ctr", "crictl", "nomad"],
        &["rm|rmi|stop|rmp|stopp|system"],
        HarmCategory::Container,
        "stops or deletes containers",
    ),
    HarmfulAct::new(
        &["qm", "pct"],
        &["destroy|stop|shutdown|rollback"],
        HarmCategory::Container,
        "stops or deletes a machine",
    ),
    HarmfulAct::new(
        &["VBoxManage"],
        &["unregistervm|closemedium|controlvm"],
        HarmCategory::Container,
        "stops or deletes a machine",
    ),
    HarmfulAct::new(
        &["podman"],
        &["machine", "rm|reset|stop"],
        HarmCategory::Container,
        "deletes a machine",
    ),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    // Somebody's own container by name is work; whatever a listing gives is all of them.
    if ENGINES.contains(&program)
        && command
            .operands()
            .any(|text| matches!(text.s.as_str(), "stop" | "restart" | "pause"))
        && (command.operands().any(|text| !text.is_known()) || command.long("--all"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Container,
            "stops every container that a listing names",
        ));
    }
    if ENGINES.contains(&program)
        && command
            .args()
            .iter()
            .any(|arg| matches!(arg.s.as_str(), "run" | "create" | "exec"))
        && reaches_host(command)
    {
        let root = mounts(command).iter().any(|source| wide_mount(source));
        if root || privileged(command) {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "gives a container the rights of this machine",
            ));
        }
    }
    let told = |word: &str| command.args().iter().any(|arg| arg.s.contains(word));
    let given = match program {
        "lxc" | "incus" | "lxc-create" | "lxc-start" => {
            told("security.privileged=true") || told("source=/") && told("disk") || told("raw.lxc")
        }
        "ctr" | "nerdctl" | "crictl" => {
            told("--privileged") || told("src=/,") || told("type=bind,src=/") || told("--net-host")
        }
        "runc" | "crun" => matches!(command.operand(0), "run" | "create" | "exec" | "start"),
        "machinectl" | "systemd-nspawn" => {
            told("--bind=/:") || told("--private-users=no") || told("-D/")
        }
        _ => false,
    };
    if given {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "gives a container the rights of this machine",
        ));
    }
    let plain_http = |text: &crate::text::ExpandedText| text.s.starts_with("http://");
    if (program == "helm" || ENGINES.contains(&program) && command.has_arg("build"))
        && command.operands().any(plain_http)
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "runs what it downloads in a container",
        ));
    }
    if program == "curl"
        && command
            .args()
            .iter()
            .any(|arg| arg.s.contains("docker.sock"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "orders the container engine about",
        ));
    }
    if matches!(program, "kubectl" | "oc")
        && command.values_of("--overrides").iter().any(|spec| {
            [
                "hostPID",
                "hostNetwork",
                "hostIPC",
                "privileged",
                "hostPath",
            ]
            .iter()
            .any(|right| spec.contains(right))
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "runs with the rights of a node",
        ));
    }
    let typed = command.input.known.as_deref().unwrap_or_default();
    let rights = [
        "cluster-admin",
        "hostPath",
        "hostPID",
        "privileged: true",
        "\"privileged\":true",
    ];
    if matches!(program, "kubectl" | "oc") && rights.iter().any(|right| typed.contains(right)) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "runs with the rights of a node or of the cluster",
        ));
    }
    if matches!(program, "kubectl" | "oc")
        && command
            .args()
            .iter()
            .any(|arg| arg.s == "apply" || arg.s == "create")
    {
        let remote = command
            .values_of("-f")
            .iter()
            .chain(&command.values_of("--filename"))
            .any(|file| file.starts_with("http"));
        if remote {
            findings.push(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                "runs what it downloads in a cluster",
            ));
        }
    }
    findings
}

/// Whether a container is given something of the host.
pub(crate) fn reaches_host(command: &ReducedCommand) -> bool {
    privileged(command) || !mounts(command).is_empty()
}

fn privileged(command: &ReducedCommand) -> bool {
    command.args().iter().any(|arg| {
        let s = arg.s.as_str();
        matches!(
            s,
            "--privileged"
                | "--privileged=true"
                | "--pid=host"
                | "--uts=host"
                | "--userns=host"
                | "--ipc=host"
        ) || s.starts_with("--cap-add=SYS_")
            || s.starts_with("--cap-add=ALL")
            || s.starts_with("--cap-add=all")
            || s.starts_with("--device=/dev/sd")
            || s.starts_with("--device=/dev/mem")
            || s.starts_with("--device=/dev/nvme")
            || s == "--security-opt=apparmor=unconfined"
            || s.contains("seccomp=unconfined")
            || s.contains("apparmor=unconfined")
            || s.contains("systempaths=unconfined")
            || s.contains("label=disable")
            || s.contains("label:disable")
            || s.contains("no-new-privileges=false")
    }) || command
        .value_of("--cap-add")
        .is_some_and(|cap| cap.s.starts_with("SYS_") || cap.s.eq_ignore_ascii_case("all"))
        || command.value_of("--pid").is_some_and(|pid| pid.s == "host")
        || command
            .value_of("--device")
            .is_some_and(|device| crate::paths::is_disk(&device.s))
}
