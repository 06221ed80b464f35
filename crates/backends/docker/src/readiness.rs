//! What this engine has to offer, told by asking it and, where the image is there, by trying.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::SystemInfo;
use hermetic_sandbox::{
    BackendError, BackendReadiness, LayerState, NetworkMode, OwnProgram, SandboxLifeline,
    SandboxPersistence, SandboxSpec, SealLayer, SystemView, try_to_say,
};
use hermetic_types::{ConversationKey, SandboxId, SandboxLimits};

use crate::address::EngineAddress;
use crate::archive::ContainerUserKind;
use crate::birth::{self, ContainerStart};
use crate::death;
use crate::docker::DockerState;
use crate::image;
use crate::image::ImageFacts;
use crate::rights::EngineRights;
use crate::shape::ContainerSeal;
use crate::user::{ContainerUser, whose};

pub(crate) async fn examine(host: &Arc<DockerState>) -> BackendReadiness {
    let info = match ask(host).await {
        Ok(info) => info,
        Err(error) => {
            return BackendReadiness {
                layers: vec![SealLayer::broken("engine", &error)],
            };
        }
    };
    let mut layers = vec![engine(host, &info), connection(host)];
    layers.extend(runtime(host, &info));
    let rights = EngineRights::of(&info, &host.config.address);
    let limits = rights.layers(&info, host.goes_without_limits());
    layers.push(match limits.iter().any(is_required) {
        // It would be refused for them, and say the same once more.
        true => SealLayer {
            name: "image",
            state: LayerState::Missing,
            detail: "not tried: no container is made without limits".to_owned(),
            remedy: None,
        },
        false => trial(host).await,
    });
    layers.push(network(host));
    layers.push(SealLayer::active(
        "capabilities",
        "none in any set, no-new-privileges",
    ));
    layers.push(seccomp(&info));
    layers.push(identity(host, &info, rights).await);
    layers.extend(limits);
    layers.extend([disk(host).await, files(host)]);
    BackendReadiness { layers }
}

/// What bounds memory and disk, by the engine's own word.
pub(crate) async fn memory_and_disk(host: &DockerState) -> Vec<SealLayer> {
    let Ok(info) = ask(host).await else {
        return Vec::new();
    };
    let rights = EngineRights::of(&info, &host.config.address);
    let mut layers = rights.layers(&info, host.goes_without_limits());
    layers.push(disk(host).await);
    layers.retain(SealLayer::bounds_memory_or_disk);
    layers
}

fn is_required(layer: &SealLayer) -> bool {
    layer.state == LayerState::Required
}

async fn ask(host: &DockerState) -> Result<SystemInfo, BackendError> {
    let docker = host.engine.brisk().await?;
    docker
        .info()
        .await
        .map_err(|error| host.engine.trouble("tell about itself", error))
}

fn engine(host: &DockerState, info: &SystemInfo) -> SealLayer {
    let version = info
        .server_version
        .as_deref()
        .unwrap_or("of unknown version");
    let rootless = match EngineRights::of(info, &host.config.address).is_rootless {
        true => ", without root",
        false => "",
    };
    let detail = format!("{version} at {}{rootless}", host.config.address);
    if info
        .os_type
        .as_deref()
        .is_none_or(|system| system == "linux")
    {
        SealLayer::active("engine", &detail)
    } else {
        SealLayer {
            name: "engine",
            state: LayerState::Required,
            detail: format!("{detail} runs no Linux containers"),
            remedy: Some("switch it to Linux containers".to_owned()),
        }
    }
}

fn connection(host: &DockerState) -> SealLayer {
    match &host.config.address {
        EngineAddress::Plain(at) if !at.starts_with("127.") && !at.starts_with("localhost") => {
            SealLayer {
                name: "connection",
                state: LayerState::Weaker,
                detail: "neither hidden nor proven: whoever is on the way owns the engine"
                    .to_owned(),
                remedy: Some("DOCKER_TLS_VERIFY=1 with certificates, or ssh://".to_owned()),
            }
        }
        EngineAddress::Plain(_) | EngineAddress::Socket(_) => {
            SealLayer::active("connection", "on this machine")
        }
        EngineAddress::Tls(_) => SealLayer::active("connection", "TLS"),
        EngineAddress::Ssh(_) => SealLayer::active("connection", "ssh"),
    }
}

/// The operator's choice has to be there.
fn runtime(host: &DockerState, info: &SystemInfo) -> Option<SealLayer> {
    let wanted = host.config.options.runtime.as_ref()?;
    let known = info.runtimes.as_ref();
    if known.is_none_or(|known| known.contains_key(wanted)) {
        return Some(SealLayer::active("runtime", wanted));
    }
    let mut names: Vec<_> = known
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    Some(SealLayer {
        name: "runtime",
        state: LayerState::Required,
        detail: format!(
            "the engine has no runtime {wanted:?}; it has {}",
            names.join(", ")
        ),
        remedy: Some("add it to the engine's daemon.json, or change docker_runtime".to_owned()),
    })
}

/// A container made, greeted and removed, where that takes no pull.
async fn trial(host: &Arc<DockerState>) -> SealLayer {
    let image = &host.config.image;
    let there = match host.engine.docker().await {
        Ok(docker) => image::look(host, docker, image).await,
        Err(error) => Err(error),
    };
    match there {
        Err(error) => return SealLayer::broken("image", &error),
        Ok(None) => {
            return SealLayer {
                name: "image",
                state: LayerState::Weaker,
                detail: format!("{image} is not there; it is pulled when first needed"),
                remedy: Some(format!("docker pull {image}")),
            };
        }
        Ok(Some(_)) => {}
    }
    let spec = trial_spec(host);
    let tried = async {
        let link = birth::start(host, &spec, ContainerStart::Fresh).await?;
        // What whoever it runs as has to be able to do.
        try_to_say(link, OwnProgram::UseWorkspace, DONE)
            .await
            .map_err(|error| BackendError::failed("run a command in a trial", error))
    };
    let tried = tried.await;
    let gone = death::destroy(host, &spec.id).await;
    match tried.and(gone) {
        Ok(()) => SealLayer::active(
            "image",
            format!("{image}: a container was made, ran a command and was removed"),
        ),
        Err(error) => unusable(host, &error),
    }
}

const DONE: &str = "done\n";

/// An image may work as its own user only.
fn unusable(host: &DockerState, error: &BackendError) -> SealLayer {
    let mut layer = SealLayer::broken("image", error);
    if host.config.options.user == ContainerUser::NeverRoot {
        layer.remedy.get_or_insert_with(|| {
            "if it works as its own user only, terminal.docker_user: image, which may be root"
                .to_owned()
        });
    }
    layer
}

fn trial_spec(host: &DockerState) -> SandboxSpec {
    SandboxSpec {
        installation: host.config.installation.clone(),
        conversation: ConversationKey::new("doctor"),
        id: SandboxId::random(),
        system: SystemView::Image(host.config.image.clone()),
        limits: SandboxLimits {
            memory_bytes: 64 << 20,
            disk_bytes: 1 << 20,
            ..SandboxLimits::default()
        },
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Creator,
        lifetime: Duration::from_secs(30),
    }
}

fn network(host: &DockerState) -> SealLayer {
    match host.config.options.seal {
        ContainerSeal::Whole => SealLayer::active("network", "none but its own loopback"),
        ContainerSeal::BrokenByNetwork => SealLayer {
            name: "network",
            state: LayerState::Missing,
            detail: "open: docker_network is true".to_owned(),
            remedy: Some("write terminal.docker_network: false, or leave it out".to_owned()),
        },
    }
}

fn seccomp(info: &SystemInfo) -> SealLayer {
    let options = info.security_options.iter().flatten();
    let profile = options
        .filter(|option| option.starts_with("name=seccomp"))
        .find(|option| !option.contains("unconfined"));
    match profile {
        Some(_) => SealLayer::active(
            "seccomp",
            "the engine's filter of system calls, and our own",
        ),
        None => SealLayer::active(
            "seccomp",
            "our own filter of system calls; the engine has none",
        ),
    }
}

async fn identity(host: &DockerState, info: &SystemInfo, rights: EngineRights) -> SealLayer {
    let options: Vec<&str> = info
        .security_options
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let has = |name: &str| options.iter().any(|option| option.starts_with(name));
    if has("name=userns") {
        return SealLayer::active("identity", "root inside is nobody outside (userns-remap)");
    }
    if rights.is_rootless {
        return SealLayer::active(
            "identity",
            "the engine itself is not root: root inside is its user outside",
        );
    }
    let picture = picture(host).await;
    let of_image = picture.as_ref().and_then(|picture| picture.user.as_deref());
    let is_root = |name: Option<&str>| whose(name) == ContainerUserKind::Root;
    match &host.config.options.user {
        ContainerUser::NeverRoot if picture.is_some() && !is_root(of_image) => SealLayer::active(
            "identity",
            format!("{}, as the image says", of_image.unwrap_or_default()),
        ),
        ContainerUser::NeverRoot => SealLayer::active("identity", OF_ITS_OWN),
        ContainerUser::Host { uid, gid } if *uid != 0 => SealLayer::active(
            "identity",
            format!("{uid}:{gid}, the user who runs hermetic"),
        ),
        ContainerUser::Named(name) if !is_root(Some(name)) => SealLayer::active("identity", name),
        ContainerUser::Image if picture.is_some() && !is_root(of_image) => SealLayer::active(
            "identity",
            format!("{}, as the image says", of_image.unwrap_or_default()),
        ),
        user => SealLayer {
            name: "identity",
            state: LayerState::Weaker,
            detail: format!(
                "{}; root inside is root outside, without a capability",
                match user {
                    ContainerUser::Named(_) => "root, as terminal.docker_user says",
                    ContainerUser::Host { .. } => "root, who runs hermetic",
                    ContainerUser::Image | ContainerUser::NeverRoot => "whoever the image says",
                }
            ),
            remedy: Some(
                "terminal.docker_user with an ordinary user, or an engine with userns-remap"
                    .to_owned(),
            ),
        },
    }
}

const OF_ITS_OWN: &str = "each container is a user of its own, unused elsewhere and never root; an image \
     whose own user is no root keeps that one";

/// Of the image, where it is there.
async fn picture(host: &DockerState) -> Option<ImageFacts> {
    let docker = host.engine.docker().await.ok()?;
    image::look(host, docker, &host.config.image).await.ok()?
}

async fn disk(host: &DockerState) -> SealLayer {
    if host.facts().await.is_ok_and(|facts| facts.may_size) {
        return SealLayer::active(SealLayer::DISK_LIMIT, "kept by the engine's storage");
    }
    SealLayer {
        name: SealLayer::DISK_LIMIT,
        state: LayerState::Weaker,
        detail: if host.sees_layers() {
            "counted, not kept: RLIMIT_FSIZE for each file, and a watch that stops the sandbox \
             within moments of passing the limit, files without a name and growth that nobody \
             explains included"
        } else {
            "counted, not kept: RLIMIT_FSIZE for each file, and a watch that stops the sandbox \
             within moments of passing the limit; files without a name are counted only by root \
             on the engine's own machine"
        }
        .to_owned(),
        remedy: Some("the engine's data on xfs mounted with pquota".to_owned()),
    }
}

/// No engine bounds them.
fn files(host: &DockerState) -> SealLayer {
    SealLayer {
        name: "file limit",
        state: LayerState::Weaker,
        detail: if host.sees_layers() {
            "a watch that stops the sandbox within moments of passing the limit"
        } else {
            "in memory only: files in a container's layer are counted by root on the engine's own \
             machine"
        }
        .to_owned(),
        remedy: Some("docker_read_only, which leaves only bounded folders to write to".to_owned()),
    }
}
