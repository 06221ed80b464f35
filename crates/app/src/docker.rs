//! The docker backend, from the configuration.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use hermetic_config::{Config, Origin};
use hermetic_docker::{
    Address, Docker, Extra, Options, Progress, RootView, Seal, Tell, User, Volume, client_folder,
};
use hermetic_sandbox::Backend;
use hermetic_types::InstallationId;
use rustix::process::{getgid, getuid};
use tracing::{info, warn};

use super::Caller;
use crate::Failure;

const WORKSPACE: &str = "/workspace";

pub(super) fn docker(
    config: &Config,
    installation: &InstallationId,
    caller: Caller,
) -> Result<Arc<dyn Backend>, Failure> {
    let address = Address::find(&|name| env::var(name).ok()).map_err(|error| {
        Failure::new(
            error.to_string(),
            "mend DOCKER_HOST or DOCKER_CONTEXT, or unset it",
        )
    })?;
    let settings = &config.terminal().docker;
    let image = super::image(config, hermetic_types::BackendKind::Docker, caller);
    let docker = Docker::open(hermetic_docker::Config {
        address,
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: super::egress::authority(config)?.map(|ours| ours.certificate().to_owned()),
        image: image.unwrap_or_else(|| settings.image.clone()),
        own: vec![config.home().root().to_owned()],
        accepted: settings.accept_risks.clone(),
        options: options(config, caller)?,
        client_folder: client_folder(&|name| env::var(name).ok()),
        tell: tell(caller),
    })?;
    Ok(Arc::new(docker))
}

/// Whether its flags and volumes can be understood and leave the seal whole.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    options(config, Caller::Onlooker).map(drop)
}

fn options(config: &Config, caller: Caller) -> Result<Options, Failure> {
    let settings = &config.terminal().docker;
    let mut env = settings.forwarded.clone();
    env.extend(settings.env.clone());
    Ok(Options {
        user: user(config, caller)?,
        root: if settings.read_only {
            RootView::ReadOnly
        } else {
            RootView::Writable
        },
        runtime: settings.runtime.clone(),
        env,
        volumes: volumes(config)?,
        extra: Extra::parse(&settings.extra_args, &settings.accept_risks)
            .map_err(|error| Failure::new(error.to_string(), error.remedy()))?,
        seal: seal(config, caller),
    })
}

/// Chats are never root unless the operator wrote so. A person at a keyboard has what the image says, as
/// `docker run` would.
fn user(config: &Config, caller: Caller) -> Result<User, Failure> {
    let settings = &config.terminal().docker;
    let Some(text) = &settings.user else {
        return Ok(match caller {
            _ if settings.run_as_host_user => User::Host {
                uid: getuid().as_raw(),
                gid: getgid().as_raw(),
            },
            Caller::CommandLine(_) => User::Image,
            Caller::Chats | Caller::Onlooker => User::NeverRoot,
        });
    };
    if settings.run_as_host_user {
        return Err(Failure::new(
            "terminal.docker_user and terminal.docker_run_as_host_user both say who runs",
            "take one of them out",
        ));
    }
    let user: User = text.parse().map_err(|error: hermetic_docker::NoSuchUser| {
        Failure::new(
            format!("terminal.docker_user: {error}"),
            "write a name, uid:gid, or image",
        )
    })?;
    if matches!(caller, Caller::Chats) && user.is_root() {
        warn!(
            "⚠ containers of chats run as root, who is root outside: terminal.docker_user is {text}"
        );
    }
    Ok(user)
}

fn volumes(config: &Config) -> Result<Vec<Volume>, Failure> {
    let settings = &config.terminal().docker;
    let wrong = |error: hermetic_docker::VolumeError| {
        Failure::new(error.to_string(), "mend terminal.docker_volumes")
    };
    let mut volumes = Vec::new();
    for text in &settings.volumes {
        match Volume::parse(text).map_err(wrong)? {
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
        volumes.extend(Volume::parse(&text).map_err(wrong)?);
    }
    Ok(volumes)
}

const KEY: &str = "terminal.docker_network";

pub(super) fn is_closed(config: &Config) -> bool {
    let written = config.origin(KEY).is_some_and(Origin::is_written);
    written && !config.terminal().docker.network
}

/// A network of its own is for a person at a keyboard who wrote it himself. A chat's bytes go
/// through the proxy or nowhere.
fn seal(config: &Config, caller: Caller) -> Seal {
    let written = config.origin(KEY).filter(|origin| origin.is_written());
    let origin = match written {
        Some(origin) if config.terminal().docker.network => origin,
        _ => return Seal::Whole,
    };
    match caller {
        Caller::CommandLine(_) => {
            broken(KEY, origin);
            Seal::BrokenByNetwork
        }
        Caller::Chats => {
            info!("{KEY} holds for the command line; chats go out by gateway.egress or not at all");
            Seal::Whole
        }
        Caller::Onlooker => Seal::Whole,
    }
}

fn broken(key: &str, origin: &Origin) {
    warn!("⚠ the seal is broken: {key} is true ({origin}), so containers have a network");
}

fn tell(caller: Caller) -> Tell {
    Tell::new(move |progress| caller.report(&said(progress), progress.done))
}

fn said(progress: &Progress) -> String {
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
