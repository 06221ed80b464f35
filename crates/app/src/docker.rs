//! The docker backend, from the configuration.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use hermetic_agent_programs::PRESETS;
use hermetic_config::{Config, SettingOrigin};
use hermetic_docker::{
    ContainerOptions, ContainerSeal, ContainerUser, ContainerVolume, DockerBackend, EngineAddress,
    ExtraFlags, PullListener, PullProgress, RootView, client_folder,
};
use hermetic_sandbox::Backend;
use hermetic_types::{InstallationId, SharedClock};
use rustix::process::{getgid, getuid};
use tracing::{info, warn};

use super::BackendCaller;
use crate::AppFailure;
use crate::installed_agents::agent_folder;

const WORKSPACE: &str = "/workspace";

pub(super) fn docker(
    config: &Config,
    installation: &InstallationId,
    caller: BackendCaller,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let address = EngineAddress::find(&|name| env::var(name).ok()).map_err(|error| {
        AppFailure::new(
            error.to_string(),
            "mend DOCKER_HOST or DOCKER_CONTEXT, or unset it",
        )
    })?;
    let settings = &config.terminal().docker;
    let image = super::sandbox_plan::image(config, hermetic_types::BackendKind::Docker, caller);
    let docker = DockerBackend::open(hermetic_docker::DockerConfig {
        address,
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: super::egress::authority(config, clock)?
            .map(|ours| ours.certificate().to_owned()),
        image: image.unwrap_or_else(|| settings.image.clone()),
        own: vec![config.home().root().to_owned()],
        accepted: accepted(config),
        options: options(config, caller)?,
        client_folder: client_folder(&|name| env::var(name).ok()),
        tell: tell(caller),
        clock: Arc::clone(clock),
    })?;
    Ok(Arc::new(docker))
}

/// Whether the engine sees the folders of this machine. One that cannot be told does not.
pub(super) fn is_near() -> bool {
    EngineAddress::find(&|name| env::var(name).ok()).is_ok_and(|address| address.is_near())
}

/// What the operator took the risk for, and the programs that were installed for sandboxes.
fn accepted(config: &Config) -> Vec<String> {
    let folder = agent_folder(config);
    let names = PRESETS.iter().map(|preset| preset.name).chain(["node"]);
    let trees = names.map(|name| folder.tree(name).display().to_string());
    let written = config.terminal().docker.accept_risks.iter().cloned();
    written.chain(trees).collect()
}

/// Whether its flags and volumes can be understood and leave the seal whole.
pub(super) fn check(config: &Config) -> Result<(), AppFailure> {
    options(config, BackendCaller::Onlooker).map(drop)
}

fn options(config: &Config, caller: BackendCaller) -> Result<ContainerOptions, AppFailure> {
    let settings = &config.terminal().docker;
    let mut env = settings.forwarded.clone();
    // Second, so that a value that was written stands over one that is only passed on.
    env.extend(settings.env.clone());
    Ok(ContainerOptions {
        user: user(config, caller)?,
        root: if settings.read_only {
            RootView::ReadOnly
        } else {
            RootView::Writable
        },
        runtime: settings.runtime.clone(),
        env,
        volumes: volumes(config)?,
        extra: ExtraFlags::parse(&settings.extra_args, &settings.accept_risks)
            .map_err(|error| AppFailure::new(error.to_string(), error.remedy()))?,
        seal: seal(config, caller),
    })
}

/// Chats are never root unless the operator wrote so. A person at a keyboard has what the image says, as
/// `docker run` would.
fn user(config: &Config, caller: BackendCaller) -> Result<ContainerUser, AppFailure> {
    let settings = &config.terminal().docker;
    let Some(text) = &settings.user else {
        return Ok(match caller {
            _ if settings.run_as_host_user => ContainerUser::Host {
                uid: getuid().as_raw(),
                gid: getgid().as_raw(),
            },
            BackendCaller::CommandLine(_) => ContainerUser::Image,
            BackendCaller::Chats | BackendCaller::Onlooker => ContainerUser::NeverRoot,
        });
    };
    // Neither stands over the other: whichever we took, one of two lines about who is root would be
    // silently without effect.
    if settings.run_as_host_user {
        return Err(AppFailure::new(
            "terminal.docker_user and terminal.docker_run_as_host_user both say who runs",
            "take one of them out",
        ));
    }
    let user: ContainerUser = text.parse().map_err(|error: hermetic_docker::NoSuchUser| {
        AppFailure::new(
            format!("terminal.docker_user: {error}"),
            "write a name, uid:gid, or image",
        )
    })?;
    if matches!(caller, BackendCaller::Chats) && user.is_root() {
        warn!(
            "⚠ containers of chats run as root, who is root outside: terminal.docker_user is {text}"
        );
    }
    Ok(user)
}

fn volumes(config: &Config) -> Result<Vec<ContainerVolume>, AppFailure> {
    let settings = &config.terminal().docker;
    let wrong = |error: hermetic_docker::VolumeError| {
        AppFailure::new(error.to_string(), "mend terminal.docker_volumes")
    };
    let mut volumes = Vec::new();
    for text in &settings.volumes {
        match ContainerVolume::parse(text).map_err(wrong)? {
            Some(volume) => volumes.push(volume),
            None => warn!(volume = %text, "docker_volumes: an entry without a colon shows nothing"),
        }
    }
    let taken = volumes.iter().any(|volume| volume.target() == WORKSPACE);
    if settings.mount_cwd_to_workspace && !taken {
        let here = config.terminal().cwd.as_ref().map(PathBuf::from);
        let here = here.filter(|cwd| cwd.is_absolute());
        let here = here.or_else(|| env::current_dir().ok()).unwrap_or_default();
        let text = format!("{}:{WORKSPACE}", here.display());
        volumes.extend(ContainerVolume::parse(&text).map_err(wrong)?);
    }
    Ok(volumes)
}

/// Where the host's folders and the engine's volumes lie inside. What cannot be read is refused elsewhere.
pub(super) fn volume_targets(config: &Config) -> Vec<PathBuf> {
    let settings = &config.terminal().docker;
    let volumes = settings.volumes.iter();
    let written = volumes.filter_map(|text| ContainerVolume::parse(text).ok().flatten());
    let mut targets: Vec<_> = written
        .map(|volume| PathBuf::from(volume.target()))
        .collect();
    if settings.mount_cwd_to_workspace {
        targets.push(WORKSPACE.into());
    }
    targets
}

const KEY: &str = "terminal.docker_network";

pub(super) fn is_closed(config: &Config) -> bool {
    let written = config.origin(KEY).is_some_and(SettingOrigin::is_written);
    written && !config.terminal().docker.network
}

/// A network of its own is for a person at a keyboard who wrote it himself. A chat's bytes go
/// through the proxy or nowhere.
fn seal(config: &Config, caller: BackendCaller) -> ContainerSeal {
    let written = config.origin(KEY).filter(|origin| origin.is_written());
    let origin = match written {
        Some(origin) if config.terminal().docker.network => origin,
        _ => return ContainerSeal::Whole,
    };
    match caller {
        BackendCaller::CommandLine(_) => {
            broken(KEY, origin);
            ContainerSeal::BrokenByNetwork
        }
        BackendCaller::Chats => {
            info!("{KEY} holds for the command line; chats go out by gateway.egress or not at all");
            ContainerSeal::Whole
        }
        BackendCaller::Onlooker => ContainerSeal::Whole,
    }
}

fn broken(key: &str, origin: &SettingOrigin) {
    warn!("⚠ the seal is broken: {key} is true ({origin}), so containers have a network");
}

fn tell(caller: BackendCaller) -> PullListener {
    PullListener::new(move |progress| caller.report(&said(progress), progress.done))
}

fn said(progress: &PullProgress) -> String {
    let image = &progress.image;
    if progress.done {
        return format!("pulled {image}, {} layers", progress.layers);
    }
    format!(
        "pulling {image}: {} of {} layers, {} of {} MB",
        progress.layers_done,
        progress.layers,
        progress.bytes >> 20,
        progress.bytes_known >> 20
    )
}
