//! Seeing a container out: by its name, and finished only when it is seen to be gone.

use std::time::Duration;

use bollard::query_parameters::{RemoveContainerOptionsBuilder, StopContainerOptionsBuilder};
use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::SandboxId;
use tokio::time::{Instant, sleep};

use crate::container::{InspectDepth, OwnedContainer};
use crate::dialect::{is_going, is_gone};
use crate::docker::{DockerState, missing};

/// A warden that is asked to end takes milliseconds; after this the engine kills it.
const ASKED: i32 = 10;
/// How long an engine may take to remove what it said it removes.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
const REMOVAL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Ends every process and keeps the files of a kept one; any other is destroyed.
pub(crate) async fn stop(host: &DockerState, id: &SandboxId) -> Result<(), BackendError> {
    let found = host.find(id, InspectDepth::Quick).await?;
    let found = found.ok_or_else(|| missing(id))?;
    if found.owned.persistence != SandboxPersistence::Kept {
        return destroy(host, id).await;
    }
    // Before it ends, so that the watch does not take the stop for a container that went away by
    // itself.
    host.watch.forget(id);
    let docker = host.engine.docker().await?;
    let options = StopContainerOptionsBuilder::new().t(ASKED).build();
    // 304 where it was stopped already, which bollard counts as done.
    docker
        .stop_container(&found.key, Some(options))
        .await
        .map_err(|error| host.engine.trouble("stop the container", error))?;
    // Asked once more: the engine's word for a stop is that it tried.
    match host.find(id, InspectDepth::Quick).await? {
        Some(found) if found.is_running => Err(BackendError::failed(
            "stop the container",
            "the engine says that it still runs",
        )),
        _ => Ok(()),
    }
}

pub(crate) async fn destroy(host: &DockerState, id: &SandboxId) -> Result<(), BackendError> {
    see_out(host, id).await?;
    // Whoever holds them is at work on them.
    // Not waited for: what holds the lock may be a pull of minutes, and it sweeps when it is done.
    if let Ok(mut seeds) = host.preparing.try_lock() {
        sweep(host, &mut seeds).await;
    }
    Ok(())
}

/// What an engine that went away kept from being removed, as far as it can be now.
pub(crate) async fn sweep(host: &DockerState, seeds: &mut Vec<SandboxId>) {
    while let Some(seed) = seeds.last() {
        if let Err(error) = see_out(host, seed).await {
            return tracing::debug!(%seed, %error, "a container that was no sandbox stays");
        }
        seeds.pop();
    }
}

async fn see_out(host: &DockerState, id: &SandboxId) -> Result<(), BackendError> {
    host.watch.forget(id);
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    // Asked again until it is gone: an engine that removes it already answers with a conflict.
    while let Some(found) = host.find(id, InspectDepth::Quick).await? {
        remove(host, &found).await?;
        if Instant::now() > deadline {
            return Err(BackendError::failed(
                "remove the container",
                "it is still there after a minute",
            ));
        }
        sleep(REMOVAL_CHECK_INTERVAL).await;
    }
    Ok(())
}

/// After a failure, when there is nobody to tell about another one.
pub(crate) async fn clear(host: &DockerState, id: &SandboxId) {
    if let Err(error) = destroy(host, id).await {
        tracing::warn!(sandbox = %id, %error, "a failed start left a container");
    }
}

async fn remove(host: &DockerState, found: &OwnedContainer) -> Result<(), BackendError> {
    let docker = host.engine.docker().await?;
    let options = RemoveContainerOptionsBuilder::new()
        .force(true)
        // With its volumes, or what an image declared as one would stay on the engine's disk for
        // ever.
        .v(true)
        .build();
    // By the engine's own id and not by the name, which may belong to another by now.
    match docker.remove_container(&found.key, Some(options)).await {
        Err(error) if !is_gone(&error) && !is_going(&error) => {
            Err(host.engine.trouble("remove the container", error))
        }
        _ => Ok(()),
    }
}
