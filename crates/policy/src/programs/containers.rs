//! Containers and clusters.

mod mounts;

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
pub(crate) use mounts::as_on_the_host;
use mounts::{mounts, wide_mount};

const ENGINES: &[&str] = &["docker", "podman", "nerdctl"];

const ACTS: &[Act] = &[
    Act::new(
        ENGINES,
        &["rm|rmi|kill"],
        Category::Container,
        "stops or deletes containers or images",
    ),
    Act::new(
        ENGINES,
        &["container", "rm|kill|prune"],
        Category::Container,
        "stops or deletes containers",
    ),
    Act::new(
        ENGINES,
        &["image", "rm|prune"],
        Category::Container,
        "deletes images",
    ),
    Act::new(
        ENGINES,
        &[
            "volume|network|builder|buildx|secret|config|context|plugin|node|service|stack",
            "rm|prune|remove",
        ],
        Category::Container,
        "deletes what containers keep",
    ),
    Act::new(
        ENGINES,
        &["system", "prune|reset"],
        Category::Container,
        "deletes everything that is not running",
    ),
    Act::new(
        ENGINES,
        &["swarm", "leave|init|join"],
        Category::Container,
        "changes a cluster",
    ),
    Act::new(
        &["docker", "podman", "nerdctl"],
        &["compose", "rm|kill"],
        Category::Container,
        "stops or deletes containers",
    ),
    Act::new(
        &["docker", "podman", "nerdctl"],
        &["compose", "down"],
        Category::Container,
        "deletes what containers keep",
    )
    .with(&["-v", "--volumes", "--rmi"]),
    Act::new(
        &["docker-compose", "podman-compose"],
        &["down"],
        Category::Container,
        "deletes what containers keep",
    )
    .with(&["-v", "--volumes", "--rmi"]),
    Act::new(
        &["docker-compose", "podman-compose"],
        &["rm|kill"],
        Category::Container,
        "stops or deletes containers",
    ),
    Act::new(
        &["kubectl", "oc"],
        &["delete|drain|cordon|taint|evict|replace"],
        Category::Container,
        "deletes or empties something in a cluster",
    )
    .unless(&["--dry-run"]),
    Act::new(
        &["kubectl", "oc"],
        &["scale"],
        Category::Container,
        "stops something in a cluster",
    )
    .with(&["--replicas=0"]),
    Act::new(
        &["kubectl", "oc"],
        &["rollout", "undo"],
        Category::Container,
        "takes back a change in a cluster",
    ),
    Act::new(
        &["kubectl", "oc"],
        &[
            "create|set|adm",
            "clusterrolebinding|rolebinding|policy|serviceaccount",
        ],
        Category::Privilege,
        "changes who may do what in a cluster",
    ),
    Act::new(
        &["kubectl", "oc"],
        &["patch|edit"],
        Category::Container,
        "changes something in a cluster",
    )
    .unless(&["--dry-run"]),
    Act::new(
        &["kubectl", "oc"],
        &["run|debug"],
        Category::Privilege,
        "runs with the rights of a node",
    )
    .with(&["--privileged", "--profile=sysadmin"]),
    Act::new(
        &["helm"],
        &["uninstall|delete|rollback|del"],
        Category::Container,
        "deletes a release",
    )
    .unless(&["--dry-run"]),
    Act::new(
        &["etcdctl"],
        &["del|snapshot"],
        Category::Container,
        "changes a cluster's memory",
    ),
    Act::new(
        &["kubeadm"],
        &["reset"],
        Category::Container,
        "takes a node apart",
    ),
    Act::new(
        &["k3s-uninstall.sh", "k3s-killall.sh"],
        &[],
        Category::Container,
        "takes a cluster apart",
    ),
    Act::new(
        &["kind", "minikube", "k3d"],
        &["delete"],
        Category::Container,
        "deletes a cluster",
    ),
    Act::new(
        &["kind", "k3d"],
        &["cluster", "delete"],
        Category::Container,
        "deletes a cluster",
    ),
    Act::new(
        &["vagrant"],
        &["destroy"],
        Category::Container,
        "deletes a machine",
    ),
    Act::new(
        &["virsh"],
        &["destroy|undefine|vol-delete|pool-delete|shutdown|reboot|snapshot-delete"],
        Category::Container,
        "stops or deletes a machine",
    ),
    Act::new(
        &["lxc", "incus", "multipass"],
        &["delete|stop|purge"],
        Category::Container,
        "stops or deletes a container",
    ),
    Act::new(
        &["lxc-destroy", "lxc-stop"],
        &[],
        Category::Container,
        "stops or deletes a container",
    ),
    Act::new(
        &["ctr", "crictl", "nomad"],
        &["rm|rmi|stop|rmp|stopp|system"],
        Category::Container,
        "stops or deletes containers",
    ),
    Act::new(
        &["qm", "pct"],
        &["destroy|stop|shutdown|rollback"],
        Category::Container,
        "stops or deletes a machine",
    ),
    Act::new(
        &["VBoxManage"],
        &["unregistervm|closemedium|controlvm"],
        Category::Container,
        "stops or deletes a machine",
    ),
    Act::new(
        &["podman"],
        &["machine", "rm|reset|stop"],
        Category::Container,
        "deletes a machine",
    ),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    // Somebody's own container by name is work; whatever a listing gives is all of them.
    if ENGINES.contains(&program)
        && command
            .operands()
            .any(|text| matches!(text.s.as_str(), "stop" | "restart" | "pause"))
        && (command.operands().any(|text| !text.is_known()) || command.long("--all"))
    {
        findings.push(Finding::dangerous(
            Category::Container,
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
            findings.push(Finding::dangerous(
                Category::Privilege,
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
        findings.push(Finding::dangerous(
            Category::Privilege,
            "gives a container the rights of this machine",
        ));
    }
    let plain_http = |text: &crate::text::Text| text.s.starts_with("http://");
    if (program == "helm" || ENGINES.contains(&program) && command.has_arg("build"))
        && command.operands().any(plain_http)
    {
        findings.push(Finding::dangerous(
            Category::RemoteCode,
            "runs what it downloads in a container",
        ));
    }
    if program == "curl"
        && command
            .args()
            .iter()
            .any(|arg| arg.s.contains("docker.sock"))
    {
        findings.push(Finding::dangerous(
            Category::Privilege,
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
        findings.push(Finding::dangerous(
            Category::Privilege,
            "runs with the rights of a node",
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
            findings.push(Finding::dangerous(
                Category::RemoteCode,
                "runs what it downloads in a cluster",
            ));
        }
    }
    findings
}

/// Whether a container is given something of the host.
pub(crate) fn reaches_host(command: &Effective) -> bool {
    privileged(command) || !mounts(command).is_empty()
}

fn privileged(command: &Effective) -> bool {
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
    }) || command
        .value_of("--cap-add")
        .is_some_and(|cap| cap.s.starts_with("SYS_") || cap.s.eq_ignore_ascii_case("all"))
        || command.value_of("--pid").is_some_and(|pid| pid.s == "host")
        || command
            .value_of("--device")
            .is_some_and(|device| crate::paths::is_disk(&device.s))
}
