//! `terminal:`: where commands run and what they may use up.

use super::{BACKENDS, DAY, SchemaKey, TEXTS, ValueShape, YEAR, count, key, seconds, texts};
use crate::shape::ListItem;

const IMAGE: &str = "nikolaik/python-nodejs:python3.11-nodejs20";
const MEGABYTES: ValueShape = ValueShape::Size {
    unit: 1 << 20,
    least: 1 << 20,
};

pub(super) fn keys() -> Vec<SchemaKey> {
    let mut keys = common();
    keys.extend(docker());
    keys.extend(elsewhere());
    keys.extend(kubernetes());
    keys.extend(native());
    keys
}

fn common() -> Vec<SchemaKey> {
    vec![
        key(
            "terminal.backend",
            BACKENDS,
            "",
            "where commands run; `native` where nothing is written",
        )
        .mirrored_by("TERMINAL_ENV"),
        key(
            "terminal.cwd",
            ValueShape::Text,
            ".",
            "working directory; `.`, `auto` and `cwd` leave it to the backend",
        )
        .mirrored_by("TERMINAL_CWD"),
        key(
            "terminal.timeout",
            seconds(DAY),
            "180",
            "seconds one command may take",
        )
        .mirrored_by("TERMINAL_TIMEOUT"),
        key(
            "terminal.lifetime_seconds",
            seconds(YEAR),
            "300",
            "idle seconds before a command line's sandbox is let go",
        )
        .mirrored_by("TERMINAL_LIFETIME_SECONDS"),
        key(
            "terminal.daemon_term_grace_seconds",
            ValueShape::Number {
                least: 0.0,
                most: 600.0,
            },
            "2",
            "seconds between a polite and a final signal",
        ),
        key(
            "terminal.env_passthrough",
            texts(ListItem::VariableName),
            "",
            "variables that commands may see; credentials of providers never are",
        ),
        key(
            "terminal.credential_files",
            TEXTS,
            "",
            "files below $HERMES_HOME shown read-only inside the sandbox",
        ),
        key(
            "terminal.home_mode",
            ValueShape::OneOf(&["auto", "real", "profile"]),
            "auto",
            "which home directory the local backend shows",
        )
        .mirrored_by("TERMINAL_HOME_MODE"),
        key(
            "terminal.shell_init_files",
            TEXTS,
            "",
            "sourced before the first command (local)",
        ),
        key(
            "terminal.auto_source_bashrc",
            ValueShape::Flag,
            "true",
            "source the usual start-up files (local)",
        ),
        key(
            "terminal.persistent_shell",
            ValueShape::Flag,
            "true",
            "keep one shell for each conversation",
        )
        .mirrored_by("TERMINAL_PERSISTENT_SHELL"),
        key(
            "terminal.container_cpu",
            ValueShape::Number {
                least: 0.01,
                most: 4096.0,
            },
            "1",
            "cores",
        )
        .mirrored_by("TERMINAL_CONTAINER_CPU"),
        key(
            "terminal.container_memory",
            MEGABYTES,
            "5120",
            "memory, in MB or spelled",
        )
        .mirrored_by("TERMINAL_CONTAINER_MEMORY"),
        key(
            "terminal.container_disk",
            MEGABYTES,
            "51200",
            "disk, in MB or spelled",
        )
        .mirrored_by("TERMINAL_CONTAINER_DISK"),
        key(
            "terminal.container_pids",
            count(1, 1 << 22),
            "256",
            "processes at once",
        ),
        key(
            "terminal.container_persistent",
            ValueShape::Flag,
            "true",
            "keep files when a sandbox is stopped",
        )
        .mirrored_by("TERMINAL_CONTAINER_PERSISTENT"),
        key(
            "terminal.sudo_password",
            ValueShape::Secret,
            "",
            "answers sudo where a command asks (local and ssh); better kept in .env",
        )
        .mirrored_by("SUDO_PASSWORD"),
        key(
            "terminal.sandbox_dir",
            ValueShape::Text,
            "",
            "where instances keep files where there is no scratch_dir (singularity); others keep them in `$HERMES_HOME/hermetic`",
        )
        .mirrored_by("TERMINAL_SANDBOX_DIR"),
    ]
}

fn docker() -> Vec<SchemaKey> {
    vec![
        key(
            "terminal.docker_image",
            ValueShape::Text,
            IMAGE,
            "image of a container",
        )
        .mirrored_by("TERMINAL_DOCKER_IMAGE"),
        key(
            "terminal.docker_forward_env",
            texts(ListItem::VariableName),
            "",
            "variables forwarded by name",
        )
        .mirrored_by("TERMINAL_DOCKER_FORWARD_ENV"),
        key(
            "terminal.docker_env",
            ValueShape::Pairs,
            "",
            "variables set by value",
        )
        .mirrored_by("TERMINAL_DOCKER_ENV"),
        key(
            "terminal.docker_volumes",
            TEXTS,
            "",
            "extra mounts, as in `docker run -v`",
        )
        .mirrored_by("TERMINAL_DOCKER_VOLUMES"),
        key(
            "terminal.docker_mount_cwd_to_workspace",
            ValueShape::Flag,
            "false",
            "show the current folder at /workspace",
        )
        .mirrored_by("TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE"),
        key(
            "terminal.docker_network",
            ValueShape::Flag,
            "true",
            "written true: a network for the command line, not for chats; false: no way out at all, whatever gateway.egress says",
        )
        .mirrored_by("TERMINAL_DOCKER_NETWORK"),
        key(
            "terminal.docker_extra_args",
            TEXTS,
            "",
            "words of `docker run`; those that weaken the seal are refused",
        )
        .mirrored_by("TERMINAL_DOCKER_EXTRA_ARGS"),
        key(
            "terminal.docker_accept_risks",
            TEXTS,
            "",
            "flags of docker_extra_args and folders of docker_volumes that are let through although they weaken the seal; `limits` for an engine that keeps none",
        ),
        key(
            "terminal.docker_run_as_host_user",
            ValueShape::Flag,
            "false",
            "run as the user that runs hermetic",
        )
        .mirrored_by("TERMINAL_DOCKER_RUN_AS_HOST_USER"),
        key(
            "terminal.docker_user",
            ValueShape::Text,
            "",
            "who containers run as: a name, `uid:gid`, or `image` for whoever the image says; if not written, chats are never root",
        ),
        key(
            "terminal.docker_persist_across_processes",
            ValueShape::Flag,
            "true",
            "find a container again after a restart",
        )
        .mirrored_by("TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES"),
        key(
            "terminal.docker_orphan_reaper",
            ValueShape::Flag,
            "true",
            "remove containers nobody owns",
        )
        .mirrored_by("TERMINAL_DOCKER_ORPHAN_REAPER"),
        key(
            "terminal.docker_runtime",
            ValueShape::Text,
            "",
            "OCI runtime, such as runsc",
        ),
        key(
            "terminal.docker_read_only",
            ValueShape::Flag,
            "false",
            "nothing but /workspace, /tmp and the like can be written; takes container_persistent: false",
        ),
    ]
}

fn elsewhere() -> Vec<SchemaKey> {
    vec![
        key(
            "terminal.singularity_image",
            ValueShape::Text,
            "",
            "image of an instance; `docker://` and docker_image if not written",
        )
        .mirrored_by("TERMINAL_SINGULARITY_IMAGE"),
        key(
            "terminal.scratch_dir",
            ValueShape::Text,
            "",
            "where instances keep files and built images; `/scratch/$USER/hermes-agent`, else sandbox_dir (singularity)",
        )
        .mirrored_by("TERMINAL_SCRATCH_DIR"),
        key(
            "terminal.modal_image",
            ValueShape::Text,
            "",
            "image of a Modal sandbox; docker_image if not written",
        )
        .mirrored_by("TERMINAL_MODAL_IMAGE"),
        key(
            "terminal.modal_mode",
            ValueShape::OneOf(&["auto", "direct", "managed"]),
            "auto",
            "how Modal is reached; `managed` is not there, `auto` is `direct`",
        )
        .mirrored_by("TERMINAL_MODAL_MODE"),
        key(
            "terminal.modal_app",
            ValueShape::Text,
            "hermetic",
            "the app that Modal sandboxes belong to",
        ),
        key(
            "terminal.modal_outbound",
            TEXTS,
            "[]",
            "networks and names a Modal sandbox of the command line reaches past the proxy",
        ),
        key(
            "terminal.daytona_image",
            ValueShape::Text,
            "",
            "image of a Daytona sandbox; docker_image if not written",
        )
        .mirrored_by("TERMINAL_DAYTONA_IMAGE"),
        key(
            "terminal.daytona_api_url",
            ValueShape::Text,
            "https://app.daytona.io/api",
            "address of Daytona's API",
        )
        .mirrored_by("DAYTONA_API_URL"),
        key(
            "terminal.daytona_target",
            ValueShape::Text,
            "",
            "region of Daytona sandboxes; the organisation's own if not written",
        )
        .mirrored_by("DAYTONA_TARGET"),
        key(
            "terminal.daytona_organization",
            ValueShape::Text,
            "",
            "organisation whose Daytona sandboxes they are, where the key alone does not say",
        )
        .mirrored_by("DAYTONA_ORGANIZATION_ID"),
        key("terminal.ssh_host", ValueShape::Text, "", "remote host (ssh)")
            .mirrored_by("TERMINAL_SSH_HOST"),
        key("terminal.ssh_user", ValueShape::Text, "", "user on it (ssh)")
            .mirrored_by("TERMINAL_SSH_USER"),
        key(
            "terminal.ssh_port",
            count(1, 65_535),
            "",
            "its port; as your ssh configuration has it, else 22 (ssh)",
        )
        .mirrored_by("TERMINAL_SSH_PORT"),
        key(
            "terminal.ssh_key",
            ValueShape::Text,
            "",
            "private key file (ssh)",
        )
        .mirrored_by("TERMINAL_SSH_KEY"),
        key(
            "terminal.ssh_config",
            ValueShape::Text,
            "",
            "ssh configuration file instead of the user's own (ssh)",
        )
        .mirrored_by("TERMINAL_SSH_CONFIG"),
        key(
            "terminal.ssh_persistent",
            ValueShape::Flag,
            "true",
            "keep one shell for each conversation (ssh)",
        )
        .mirrored_by("TERMINAL_SSH_PERSISTENT"),
        key(
            "terminal.local_persistent",
            ValueShape::Flag,
            "false",
            "keep one shell for each conversation (local)",
        )
        .mirrored_by("TERMINAL_LOCAL_PERSISTENT"),
    ]
}

fn kubernetes() -> Vec<SchemaKey> {
    let text = |path, what| key(path, ValueShape::Text, "", what);
    vec![
        text(
            "terminal.kubernetes_image",
            "image of a pod; docker_image if not written",
        ),
        text(
            "terminal.kubernetes_kubeconfig",
            "kubeconfig file; else KUBECONFIG, the cluster this runs in, or ~/.kube/config",
        ),
        text(
            "terminal.kubernetes_context",
            "context of the kubeconfig; its current one if not written",
        ),
        text(
            "terminal.kubernetes_namespace",
            "namespace of sandboxes; the context's own if not written",
        ),
        text(
            "terminal.kubernetes_runtime_class",
            "runtime class of pods, as gVisor's or Kata's",
        ),
        key(
            "terminal.kubernetes_node_selector",
            TEXTS,
            "[]",
            "labels of nodes that sandboxes run on, each `name=value`",
        ),
        key(
            "terminal.kubernetes_tolerations",
            TEXTS,
            "[]",
            "taints that pods tolerate, as `name=value:NoSchedule`",
        ),
        key(
            "terminal.kubernetes_image_pull_secrets",
            TEXTS,
            "[]",
            "secrets of the namespace by which nodes pull the image",
        ),
        text(
            "terminal.kubernetes_request_cpu",
            "CPU that a node keeps free for a sandbox; 100m if not written",
        ),
        text(
            "terminal.kubernetes_request_memory",
            "memory that a node keeps free for a sandbox; 256 MiB if not written",
        ),
        text(
            "terminal.kubernetes_ephemeral_storage",
            "disk that a node keeps free for a sandbox; 64 MiB if not written",
        ),
        text(
            "terminal.kubernetes_storage_class",
            "storage class of kept files; the cluster's default if not written",
        ),
        key(
            "terminal.kubernetes_volume_size",
            ValueShape::Text,
            "5Gi",
            "size of the volume that keeps a sandbox's files",
        ),
        key(
            "terminal.kubernetes_deadline",
            seconds(YEAR),
            "86400",
            "seconds after which a pod ends however much it is used",
        ),
        key(
            "terminal.kubernetes_user",
            count(1, (1 << 31) - 1),
            "",
            "user id of all pods, where the cluster wants that; one for each if not written",
        ),
        key(
            "terminal.kubernetes_host_users",
            ValueShape::Flag,
            "true",
            "false: each pod in a user namespace",
        ),
        key(
            "terminal.kubernetes_accept_risks",
            TEXTS,
            "[]",
            "what a pod may reach past the proxy: route, dns, api, metadata, node",
        ),
    ]
}

fn native() -> Vec<SchemaKey> {
    vec![
        key(
            "terminal.native_rootfs",
            ValueShape::Text,
            "",
            "a root file system folder instead of the host's own system, read-only",
        ),
        key(
            "terminal.native_mounts",
            texts(ListItem::Mount),
            "",
            "extra mounts: `/host/path:/inside`, with `:rw` to allow writing",
        ),
        key(
            "terminal.native_accept_risks",
            TEXTS,
            "",
            "folders of native_mounts that are shown although whoever has them owns an account or the machine",
        ),
        key(
            "terminal.native_require",
            TEXTS,
            "",
            "layers that must hold, or nothing starts: `landlock`, `cgroup`, `disk` (a limit that the kernel keeps)",
        ),
        key(
            "terminal.native_total_memory",
            MEGABYTES,
            "",
            "memory of all native sandboxes together, in MB or spelled; fits the machine if not written",
        ),
        key(
            "terminal.native_total_processes",
            ValueShape::Whole {
                least: 64,
                most: 4_194_304,
            },
            "",
            "processes of all native sandboxes together; fits the machine if not written",
        ),
    ]
}
