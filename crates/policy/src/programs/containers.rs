//! Containers and clusters.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::Text;

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

fn mounts(command: &Effective) -> Vec<String> {
    let mut sources = Vec::new();
    for flag in ["-v", "--volume"] {
        for value in command.values_of(flag) {
            if let Some(source) = value.split(':').next().filter(|source| {
                source.starts_with('/') || source.starts_with('.') || source.starts_with('~')
            }) {
                sources.push(source.to_owned());
            }
        }
    }
    for value in command.values_of("--mount") {
        for field in value.split(',') {
            if let Some(source) = field
                .strip_prefix("source=")
                .or_else(|| field.strip_prefix("src="))
                && source.starts_with('/')
            {
                sources.push(source.to_owned());
            }
        }
    }
    sources
}

/// The words of a command inside, with what is mounted there under the names it has outside.
pub(crate) fn as_on_the_host(command: &Effective, words: &[Text]) -> Vec<Text> {
    let mounted = mounted(command);
    words
        .iter()
        .map(|word| {
            let s = mounted.iter().fold(word.s.clone(), |s, (outside, inside)| {
                renamed(&s, inside, outside)
            });
            Text { s, ..word.clone() }
        })
        .collect()
}

/// Pairs of folders: outside, inside.
fn mounted(command: &Effective) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for flag in ["-v", "--volume"] {
        for value in command.values_of(flag) {
            let mut fields = value.split(':');
            if let (Some(outside), Some(inside)) = (fields.next(), fields.next()) {
                pairs.push((outside.to_owned(), inside.to_owned()));
            }
        }
    }
    for value in command.values_of("--mount") {
        let field = |names: &[&str]| {
            value.split(',').find_map(|field| {
                let (name, path) = field.split_once('=')?;
                names.contains(&name).then(|| path.to_owned())
            })
        };
        if let (Some(outside), Some(inside)) = (
            field(&["source", "src"]),
            field(&["target", "dst", "destination"]),
        ) {
            pairs.push((outside, inside));
        }
    }
    pairs.retain(|(outside, inside)| outside.starts_with('/') && inside.len() > 1);
    pairs
}

/// `rm -rf /h/etc` with `/` for `/h` is `rm -rf /etc`.
fn renamed(text: &str, inside: &str, outside: &str) -> String {
    let inside = inside.trim_end_matches('/');
    let outside = outside.trim_end_matches('/');
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(inside) {
        let (before, after) = (&rest[..at], &rest[at + inside.len()..]);
        let bounded =
            |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !"._-".contains(c));
        done.push_str(before);
        let starts = before.chars().next_back().is_none_or(|c| c != '/')
            && bounded(before.chars().next_back());
        if starts && bounded(after.chars().next()) {
            done.push_str(outside);
            if outside.is_empty() && !after.starts_with('/') {
                done.push('/');
            }
        } else {
            done.push_str(inside);
        }
        rest = after;
    }
    done.push_str(rest);
    done
}

fn wide_mount(source: &str) -> bool {
    let source = source.trim_end_matches('/');
    matches!(
        source,
        "" | "/etc"
            | "/root"
            | "/home"
            | "/proc"
            | "/sys"
            | "/dev"
            | "/boot"
            | "/usr"
            | "/var"
            | "/var/run"
            | "/lib"
            | "/bin"
            | "/run"
    ) || source.ends_with("docker.sock")
        || source.ends_with("/.ssh")
        || source.ends_with("/.aws")
        || source.starts_with("/etc/")
        || source.ends_with("containerd.sock")
}
