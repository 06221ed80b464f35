//! Where commands run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_types::{BackendKind, SandboxLimits, Secret};

use super::pick::SettingPicker;
use crate::grammar;
use crate::problem::ConfigProblem;
use crate::wording::short;

#[derive(Clone, Debug)]
pub struct TerminalConfig {
    /// `None` where nobody wrote one.
    pub backend: Option<BackendKind>,
    /// `None` where it is left to the backend.
    pub cwd: Option<String>,
    pub timeout: Duration,
    /// The longest timeout a command may ask for.
    pub max_foreground_timeout: Duration,
    pub lifetime: Duration,
    pub term_grace: Duration,
    pub env_passthrough: Vec<String>,
    pub credential_files: Vec<String>,
    pub persistent_shell: bool,
    pub ssh_persistent_shell: bool,
    pub local_persistent_shell: bool,
    pub limits: SandboxLimits,
    /// Files outlive a stopped sandbox.
    pub persistent: bool,
    pub sandbox_dir: Option<PathBuf>,
    pub docker: DockerTerminal,
    pub singularity_image: Option<String>,
    /// Where instances keep what is large.
    pub scratch_dir: Option<PathBuf>,
    pub modal_image: Option<String>,
    pub modal: ModalTerminal,
    pub daytona_image: Option<String>,
    pub daytona: DaytonaTerminal,
    pub kubernetes_image: Option<String>,
    pub kubernetes: KubernetesTerminal,
    pub ssh: SshTerminal,
    pub native: NativeTerminal,
    pub sudo_password: Option<Secret>,
}

#[derive(Clone, Debug)]
pub struct DaytonaTerminal {
    pub api_key: Option<Secret>,
    pub api_url: String,
    pub target: Option<String>,
    pub organization: Option<String>,
}

#[derive(Clone, Debug)]
pub struct KubernetesTerminal {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub namespace: Option<String>,
    pub runtime_class: Option<String>,
    /// Each `name=value`.
    pub node_selector: Vec<String>,
    /// As taints are written.
    pub tolerations: Vec<String>,
    pub image_pull_secrets: Vec<String>,
    pub request_cpu: Option<String>,
    pub request_memory: Option<String>,
    pub request_storage: Option<String>,
    pub storage_class: Option<String>,
    pub volume_size: String,
    pub deadline: Duration,
    pub user: Option<u32>,
    pub host_users: bool,
    pub accept_risks: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct DockerTerminal {
    pub image: String,
    pub forward_env: Vec<String>,
    /// Those of `forward_env` that are set, with their values.
    pub forwarded: BTreeMap<String, Secret>,
    pub env: BTreeMap<String, Secret>,
    pub volumes: Vec<String>,
    pub mount_cwd_to_workspace: bool,
    pub network: bool,
    pub extra_args: Vec<String>,
    pub accept_risks: Vec<String>,
    pub read_only: bool,
    pub run_as_host_user: bool,
    /// As it was written, where it was.
    pub user: Option<String>,
    pub persist_across_processes: bool,
    pub orphan_reaper: bool,
    pub runtime: Option<String>,
    pub program: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct ModalTerminal {
    /// By way of a gateway of the vendor's.
    pub managed: bool,
    pub app: String,
    pub outbound: Vec<String>,
    pub token_id: Option<Secret>,
    pub token_secret: Option<Secret>,
    pub server_url: Option<String>,
    pub environment: Option<String>,
    pub profile: Option<String>,
    pub config_path: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct SshTerminal {
    pub host: Option<String>,
    pub user: Option<String>,
    /// As the user's ssh configuration has it, where nobody wrote one.
    pub port: Option<u16>,
    pub key: Option<PathBuf>,
    pub config_file: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct NativeTerminal {
    /// The host's own system, read-only, where absent.
    pub rootfs: Option<PathBuf>,
    pub mounts: Vec<NativeMount>,
    /// Sources of mounts whose risk the operator takes.
    pub accept_risks: Vec<PathBuf>,
    /// Layers that must hold, by the names of `hermetic doctor`.
    pub require: Vec<String>,
    /// For all sandboxes together; chosen to fit the machine where absent.
    pub total_memory_bytes: Option<u64>,
    pub total_processes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeMount {
    pub source: PathBuf,
    pub target: PathBuf,
    pub writable: bool,
}

impl TerminalConfig {
    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        let cwd = pick.text("terminal.cwd");
        Self {
            backend: pick.maybe_choice("terminal.backend"),
            cwd: Some(cwd).filter(|cwd| !matches!(cwd.as_str(), "." | "auto" | "cwd")),
            timeout: pick.seconds("terminal.timeout"),
            max_foreground_timeout: pick.seconds("TERMINAL_MAX_FOREGROUND_TIMEOUT"),
            lifetime: pick.seconds("terminal.lifetime_seconds"),
            term_grace: pick.seconds("terminal.daemon_term_grace_seconds"),
            env_passthrough: pick.texts("terminal.env_passthrough"),
            credential_files: pick.texts("terminal.credential_files"),
            persistent_shell: pick.flag("terminal.persistent_shell"),
            ssh_persistent_shell: pick.flag("terminal.ssh_persistent"),
            local_persistent_shell: pick.flag("terminal.local_persistent"),
            limits: SandboxLimits {
                cpu: pick.number("terminal.container_cpu"),
                memory_bytes: pick.bytes("terminal.container_memory"),
                disk_bytes: pick.bytes("terminal.container_disk"),
                pids: pick.count("terminal.container_pids"),
                ..SandboxLimits::default()
            },
            persistent: pick.flag("terminal.container_persistent"),
            sandbox_dir: pick.maybe_path("terminal.sandbox_dir"),
            docker: docker(pick, problems),
            singularity_image: pick.maybe_text("terminal.singularity_image"),
            scratch_dir: pick.maybe_path("terminal.scratch_dir"),
            modal_image: pick.maybe_text("terminal.modal_image"),
            modal: modal(pick),
            daytona_image: pick.maybe_text("terminal.daytona_image"),
            daytona: DaytonaTerminal {
                api_key: pick.secret("DAYTONA_API_KEY"),
                api_url: pick.text("terminal.daytona_api_url"),
                target: pick.maybe_text("terminal.daytona_target"),
                organization: pick.maybe_text("terminal.daytona_organization"),
            },
            kubernetes_image: pick.maybe_text("terminal.kubernetes_image"),
            kubernetes: kubernetes(pick),
            ssh: SshTerminal {
                host: pick.maybe_text("terminal.ssh_host"),
                user: pick.maybe_text("terminal.ssh_user"),
                port: pick.maybe_count("terminal.ssh_port"),
                key: pick.maybe_path("terminal.ssh_key"),
                config_file: pick.maybe_path("terminal.ssh_config"),
            },
            native: native(pick, problems),
            sudo_password: pick.secret("terminal.sudo_password"),
        }
    }
}

fn docker(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> DockerTerminal {
    const ENV: &str = "terminal.docker_env";
    let env = pick.pairs(ENV);
    if let Some(name) = env.keys().find(|name| !grammar::is_variable_name(name)) {
        let what = format!("`{}` is not a variable name", short(name));
        problems.push(
            pick.wrong(ENV, what)
                .help("write letters, digits and `_` only, and the value after the colon"),
        );
    }
    let forward_env = pick.texts("terminal.docker_forward_env");
    DockerTerminal {
        forwarded: forward_env
            .iter()
            .filter_map(|name| Some((name.clone(), Secret::new(pick.variable(name)?))))
            .collect(),
        image: pick.text("terminal.docker_image"),
        forward_env,
        env,
        volumes: pick.texts("terminal.docker_volumes"),
        mount_cwd_to_workspace: pick.flag("terminal.docker_mount_cwd_to_workspace"),
        network: pick.flag("terminal.docker_network"),
        extra_args: pick.texts("terminal.docker_extra_args"),
        accept_risks: pick.texts("terminal.docker_accept_risks"),
        read_only: pick.flag("terminal.docker_read_only"),
        run_as_host_user: pick.flag("terminal.docker_run_as_host_user"),
        user: pick.maybe_text("terminal.docker_user"),
        persist_across_processes: pick.flag("terminal.docker_persist_across_processes"),
        orphan_reaper: pick.flag("terminal.docker_orphan_reaper"),
        runtime: pick.maybe_text("terminal.docker_runtime"),
        program: pick.maybe_path("HERMES_DOCKER_BINARY"),
    }
}

fn kubernetes(pick: &SettingPicker<'_>) -> KubernetesTerminal {
    KubernetesTerminal {
        kubeconfig: pick.maybe_path("terminal.kubernetes_kubeconfig"),
        context: pick.maybe_text("terminal.kubernetes_context"),
        namespace: pick.maybe_text("terminal.kubernetes_namespace"),
        runtime_class: pick.maybe_text("terminal.kubernetes_runtime_class"),
        node_selector: pick.texts("terminal.kubernetes_node_selector"),
        tolerations: pick.texts("terminal.kubernetes_tolerations"),
        image_pull_secrets: pick.texts("terminal.kubernetes_image_pull_secrets"),
        request_cpu: pick.maybe_text("terminal.kubernetes_request_cpu"),
        request_memory: pick.maybe_text("terminal.kubernetes_request_memory"),
        request_storage: pick.maybe_text("terminal.kubernetes_ephemeral_storage"),
        storage_class: pick.maybe_text("terminal.kubernetes_storage_class"),
        volume_size: pick.text("terminal.kubernetes_volume_size"),
        deadline: pick.seconds("terminal.kubernetes_deadline"),
        user: pick.maybe_count("terminal.kubernetes_user"),
        host_users: pick.flag("terminal.kubernetes_host_users"),
        accept_risks: pick.texts("terminal.kubernetes_accept_risks"),
    }
}

fn modal(pick: &SettingPicker<'_>) -> ModalTerminal {
    ModalTerminal {
        managed: pick.text("terminal.modal_mode") == "managed",
        app: pick.text("terminal.modal_app"),
        outbound: pick.texts("terminal.modal_outbound"),
        token_id: pick.secret("MODAL_TOKEN_ID"),
        token_secret: pick.secret("MODAL_TOKEN_SECRET"),
        server_url: pick.maybe_text("MODAL_SERVER_URL"),
        environment: pick.maybe_text("MODAL_ENVIRONMENT"),
        profile: pick.maybe_text("MODAL_PROFILE"),
        config_path: pick.maybe_path("MODAL_CONFIG_PATH"),
    }
}

fn native(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> NativeTerminal {
    const ROOTFS: &str = "terminal.native_rootfs";
    let rootfs = pick.maybe_path(ROOTFS);
    if rootfs
        .as_deref()
        .and_then(Path::to_str)
        .is_some_and(|rootfs| !grammar::is_plain(rootfs))
    {
        problems.push(
            pick.wrong(ROOTFS, "expected an absolute path without `..`")
                .help("for example /srv/rootfs"),
        );
    }
    let mounts = pick
        .texts("terminal.native_mounts")
        .iter()
        .filter_map(|text| grammar::mount(text))
        .map(|mount| NativeMount {
            source: pick.path_of(mount.source),
            target: mount.target.into(),
            writable: mount.writable,
        })
        .collect();
    NativeTerminal {
        rootfs,
        mounts,
        accept_risks: pick
            .texts("terminal.native_accept_risks")
            .iter()
            .map(|folder| pick.path_of(folder))
            .collect(),
        require: pick.texts("terminal.native_require"),
        total_memory_bytes: pick.maybe_bytes("terminal.native_total_memory"),
        total_processes: pick.maybe_count("terminal.native_total_processes"),
    }
}
