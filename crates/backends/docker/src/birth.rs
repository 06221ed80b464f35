//! From a spec to a running container with a link into it, or to nothing.

use std::sync::Arc;

use bollard::Docker;
use bollard::body_full;
use bollard::errors::Error;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, StartContainerOptions, UploadToContainerOptionsBuilder,
};
use futures::TryFutureExt;
use hermetic_sandbox::{BackendError, SandboxSpec, SystemView, WardenLink, launch};
use hermetic_types::SandboxId;

use crate::archive::{self, ContainerUserKind};
use crate::container::InspectDepth;
use crate::death;
use crate::dialect::is_taken;
use crate::docker::{DockerState, missing};
use crate::image;
use crate::label;
use crate::layer;
use crate::link;
use crate::shape;
use crate::user;
use crate::watch::{LayerBounds, WatchStart};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerStart {
    Fresh,
    Again,
}

pub(crate) async fn start(
    host: &Arc<DockerState>,
    spec: &SandboxSpec,
    start: ContainerStart,
) -> Result<WardenLink, BackendError> {
    host.check_mounts(spec)?;
    let (making, unwanted) = (Arc::clone(host), Arc::clone(host));
    let (wanted, id) = (spec.clone(), spec.id.clone());
    let make = async move {
        match start {
            ContainerStart::Fresh => create(&making, &wanted).await,
            ContainerStart::Again => resume(&making, &wanted).await,
        }
    };
    let discard = async move {
        match start {
            ContainerStart::Fresh => death::destroy(&unwanted, &id).await,
            ContainerStart::Again => death::stop(&unwanted, &id).await,
        }
    };
    launch(&spec.id, make, discard).await
}

async fn create(host: &Arc<DockerState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let image = image_of(spec)?;
    let docker = host.engine.docker().await?;
    let facts = host.facts().await?;
    host.check_engine(&facts)?;
    let picture = image::provide(host, docker, image).await?;
    let options = &host.config.options;
    let whose = shape::whose_of(options, spec, &picture, &facts);
    // Everything that can take minutes comes before the container is made: one that waits for a
    // pull would be taken for a dead create.
    let layered = layer::provide(host, docker, image, &picture, whose).await?;
    let mut body = shape::shape(options, spec, &layered, &picture, &facts)?;
    loop {
        let key = make(host, docker, &spec.id, &mut body).await?;
        if let Err(refused) = host.check_limits(docker, &key, &facts).await {
            death::clear(host, &spec.id).await;
            return Err(refused);
        }
        match bring_up(docker, &key).await {
            Ok(link) => {
                let bounds = LayerBounds::of(&spec.limits);
                host.watch_over(&spec.id, &bounds, WatchStart::Started);
                return Ok(link);
            }
            Err((step, error)) => {
                // The name has to be free before another with it can be made.
                death::clear(host, &spec.id).await;
                if !host.lacks.learn_at_start(&body, &error) {
                    return Err(host.engine.trouble(step, error));
                }
            }
        }
    }
}

async fn bring_up(docker: &Docker, key: &str) -> Result<WardenLink, (&'static str, Error)> {
    // Attached before it is started: the warden's hello would come before anybody listens, and be
    // lost.
    let link = link::attach(docker, key)
        .await
        .map_err(|error| ("reach the warden", error))?;
    docker
        .start_container(key, None::<StartContainerOptions>)
        .await
        .map_err(|error| ("start the container", error))?;
    Ok(link)
}

/// With the files it was stopped with, and the warden of this program's own version.
async fn resume(host: &Arc<DockerState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let found = host.find(&spec.id, InspectDepth::Weigh).await?;
    let found = found.ok_or_else(|| missing(&spec.id))?;
    if found.layer_bytes > Some(spec.limits.disk_bytes) {
        return Err(BackendError::Refused {
            what: format!("sandbox {}", spec.id),
            why: "its files take more than its disk limit".to_owned(),
        });
    }
    let docker = host.engine.docker().await?;
    let trouble = |step: &'static str| move |error| host.engine.trouble(step, error);
    let reach = || link::reach(docker, &found.key).map_err(trouble("reach the warden"));
    let link = if found.is_running {
        reach().await?
    } else {
        // It may be of a time when the risk was accepted.
        let facts = host.facts().await?;
        host.check_engine(&facts)?;
        host.check_limits(docker, &found.key, &facts).await?;
        let whose = user::whose(found.user.as_deref());
        // Before the start, and each time: a sandbox that was stopped by an older version of this
        // program has that one's warden.
        place(host, docker, &found.key, whose)
            .await
            .map_err(trouble("place the warden in the container"))?;
        let start = || async {
            docker
                .start_container(&found.key, None::<StartContainerOptions>)
                .await
                .map_err(trouble("start the container"))
        };
        if found.speaks_on_stdio {
            let link = link::attach(docker, &found.key).await;
            start().await?;
            link.map_err(trouble("reach the warden"))?
        } else {
            start().await?;
            reach().await?
        }
    };
    let (bounds, start) = (LayerBounds::of(&spec.limits), watch_start(found.is_running));
    host.watch_over(&spec.id, &bounds, start);
    Ok(link)
}

fn watch_start(was_running: bool) -> WatchStart {
    match was_running {
        true => WatchStart::Found,
        false => WatchStart::Started,
    }
}

/// The container, not started. `body` is left as what was sent.
async fn make(
    host: &DockerState,
    docker: &Docker,
    id: &SandboxId,
    body: &mut ContainerCreateBody,
) -> Result<String, BackendError> {
    let options = || {
        let name = label::name(id);
        Some(CreateContainerOptionsBuilder::new().name(&name).build())
    };
    let made = loop {
        // At each turn, as what was learnt from the last refusal is left out of the next request.
        host.lacks.adapt(body);
        let made = docker.create_container(options(), body.clone()).await;
        match &made {
            Err(refusal) if host.lacks.learn(body, refusal) => {}
            _ => break made,
        }
    };
    match made {
        Ok(made) => Ok(made.id),
        Err(error) if is_taken(&error) => Err(BackendError::Refused {
            what: format!("sandbox {id}"),
            why: "the id is taken".to_owned(),
        }),
        Err(error) => {
            let refused = host.engine.trouble("make the container", error);
            // An answer that never came may hide a container that did.
            if matches!(refused, BackendError::Unavailable { .. }) {
                death::clear(host, id).await;
            }
            Err(refused)
        }
    }
}

/// Into a container that does not run.
pub(crate) async fn place(
    host: &DockerState,
    docker: &Docker,
    key: &str,
    whose: ContainerUserKind,
) -> Result<(), Error> {
    let archive = host.archives.get(host.config.program, whose);
    let options = UploadToContainerOptionsBuilder::new()
        .path(archive::ROOT)
        .build();
    docker
        .upload_to_container(key, Some(options), body_full(archive))
        .await
}

fn image_of(spec: &SandboxSpec) -> Result<&str, BackendError> {
    match &spec.system {
        SystemView::Image(image) => Ok(image),
        SystemView::Host | SystemView::Rootfs(_) => Err(BackendError::Refused {
            what: "a container without an image".to_owned(),
            why: "name one in terminal.docker_image, gateway.sandbox_image or --image".to_owned(),
        }),
    }
}
