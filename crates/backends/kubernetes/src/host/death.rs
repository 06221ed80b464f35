//! Seeing a sandbox out: by its name and labels, and finished only when it is seen to be gone.

use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::SandboxId;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::client::ObjectKind;
use super::kubernetes::{KubernetesState, missing};
use super::label::{self, is_leaving, name_of, uid_of};
use super::trouble::ClusterTrouble;

const FIRST_CHECK: Duration = Duration::from_millis(30);
const LONGEST_CHECK: Duration = Duration::from_secs(1);

const STEP: &str = "end the sandbox";

/// Ends every process and keeps the volume of a kept one; any other is destroyed.
pub(crate) async fn stop(host: &KubernetesState, id: &SandboxId) -> Result<(), BackendError> {
    let at = |trouble: ClusterTrouble| trouble.at(STEP);
    let claim = host.named(ObjectKind::Claim, id).await.map_err(at)?;
    let job = host.named(ObjectKind::Job, id).await.map_err(at)?;
    let is_kept = |owned: &label::OwnedObject| owned.persistence == SandboxPersistence::Kept;
    match (&claim, &job) {
        (Some((_, owned)), _) if is_kept(owned) => end_pod(host, id).await,
        (_, Some(_)) => destroy(host, id).await,
        _ => Err(missing(id)),
    }
}

pub(crate) async fn destroy(host: &KubernetesState, id: &SandboxId) -> Result<(), BackendError> {
    end_pod(host, id).await?;
    until_gone(host, id, ObjectKind::Claim).await
}

/// After a failure, when there is nobody to tell about another one.
pub(crate) async fn clear(host: &KubernetesState, id: &SandboxId) {
    if let Err(error) = destroy(host, id).await {
        tracing::warn!(sandbox = %id, %error, "a failed start left a sandbox");
    }
}

/// The Job and its pod: afterwards no process of the sandbox is alive.
pub(crate) async fn end_pod(host: &KubernetesState, id: &SandboxId) -> Result<(), BackendError> {
    host.forget(id);
    until_gone(host, id, ObjectKind::Job).await?;
    until_no_pod(host, id).await
}

/// Deletes that very object and waits for its end: one of the same name that comes later is not ours to
/// delete. What is not of this installation is to us as if it were not there.
async fn until_gone(
    host: &KubernetesState,
    id: &SandboxId,
    kind: ObjectKind,
) -> Result<(), BackendError> {
    let deadline = Instant::now() + host.config.timeouts.end;
    let mut pause = FIRST_CHECK;
    let mut told = String::new();
    loop {
        let found = host
            .named(kind, id)
            .await
            .map_err(|trouble| trouble.at(STEP))?;
        let Some((object, _)) = found else {
            return Ok(());
        };
        if told != uid_of(&object) && !is_leaving(&object) {
            delete(host, kind, &object).await?;
            told = uid_of(&object).to_owned();
        }
        if Instant::now() > deadline {
            return Err(still_there(host, id).await);
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_CHECK);
    }
}

/// Its parts go first: a Job that is gone has no pod left. Never at once (grace 0): then the object goes and
/// its processes may stay.
async fn delete(
    host: &KubernetesState,
    kind: ObjectKind,
    object: &Value,
) -> Result<(), BackendError> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": uid_of(object)},
    });
    let url = host.cluster.url(kind, &[name_of(object)]);
    match host.cluster.delete(url, &options).await {
        // Somebody else was faster, or another has the name now.
        Ok(_) | Err(ClusterTrouble::Missing | ClusterTrouble::Conflict { .. }) => Ok(()),
        Err(trouble) => Err(trouble.at(STEP)),
    }
}

/// Of a pod whose Job went without it, as when somebody deleted that by hand.
async fn until_no_pod(host: &KubernetesState, id: &SandboxId) -> Result<(), BackendError> {
    let deadline = Instant::now() + host.config.timeouts.end;
    let mut pause = FIRST_CHECK;
    loop {
        let pods = host.pods_of(id).await.map_err(|trouble| trouble.at(STEP))?;
        if pods.is_empty() {
            return Ok(());
        }
        for pod in pods.iter().filter(|pod| !is_leaving(pod)) {
            delete(host, ObjectKind::Pod, pod).await?;
        }
        if Instant::now() > deadline {
            return Err(still_there(host, id).await);
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_CHECK);
    }
}

/// A node that does not answer cannot end what runs there: the row stays, and it is tried again.
async fn still_there(host: &KubernetesState, id: &SandboxId) -> BackendError {
    let pods = host.pods_of(id).await.unwrap_or_default();
    let nodes: Vec<_> = pods
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    let place = match nodes.as_slice() {
        [] => String::new(),
        nodes => format!(" on node {}", nodes.join(", ")),
    };
    BackendError::Unavailable {
        what: format!("the sandbox does not end{place}"),
        remedy: "see whether the node answers: kubectl get nodes; it ends when the node is back"
            .to_owned(),
    }
}
