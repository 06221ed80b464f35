//! Seeing a sandbox out: by its tags, and finished only when it is seen to be gone.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::SandboxId;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::birth::router;
use crate::find::RunningSandbox;
use crate::modal::{ModalState, missing};
use crate::patience::CallTimeouts;
use crate::trouble::trouble;
use crate::wire::{ImageDeleteRequest, SandboxTerminateRequest, TaskSnapshotFilesystemRequest};

/// As long as Hermes gives it for one attempt.
const SNAPSHOT: CallTimeouts = CallTimeouts::of(60, 150);
/// Modal's own default. A conversation that nobody comes back to for longer starts anew.
const KEPT_FOR: i64 = 30 * 24 * 3600;
/// How long Modal may take to end what it said it ends.
const SANDBOX_END_TIMEOUT: Duration = Duration::from_secs(60);
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Ends every process and keeps the files of a kept one; any other is destroyed.
pub(crate) async fn stop(host: &Arc<ModalState>, id: &SandboxId) -> Result<(), BackendError> {
    let standing = host.standing(Some(id)).await?;
    let Some(first) = standing.first() else {
        return match host.snapshots.get(id).await? {
            Some(_) => Ok(()),
            None => Err(missing(id)),
        };
    };
    if first.owned.persistence != SandboxPersistence::Kept {
        return destroy(host, id).await;
    }
    let image = snapshot(host, first).await?;
    // Written down before anything ends: cut off in between, there are both, and the running one
    // counts.
    host.snapshots.put(id, image).await?;
    end_all(host, id).await
}

pub(crate) async fn destroy(host: &Arc<ModalState>, id: &SandboxId) -> Result<(), BackendError> {
    end_all(host, id).await?;
    let Some(image) = host.snapshots.get(id).await? else {
        return Ok(());
    };
    let question = ImageDeleteRequest { image_id: image };
    match host.control.ask(question, CallTimeouts::QUICK).await {
        Err(status) if status.code() != Code::NotFound => {
            Err(trouble("delete the snapshot", &status))
        }
        // After the image is gone: the entry is all that leads to it.
        _ => host.snapshots.remove(id).await,
    }
}

/// After a failure, when there is nobody to tell about another one. An earlier snapshot stays.
pub(crate) async fn clear(host: &ModalState, id: &SandboxId) {
    if let Err(error) = end_all(host, id).await {
        tracing::warn!(sandbox = %id, %error, "a failed start left a sandbox");
    }
}

/// All starts of it: a create that was heard twice is one too many.
async fn end_all(host: &ModalState, id: &SandboxId) -> Result<(), BackendError> {
    let deadline = Instant::now() + SANDBOX_END_TIMEOUT;
    loop {
        let standing = host.standing(Some(id)).await?;
        if standing.is_empty() {
            return Ok(());
        }
        for one in &standing {
            let ended = end(host, one).await;
            ended.map_err(|status| trouble("end the sandbox", &status))?;
        }
        if Instant::now() > deadline {
            return Err(BackendError::failed(
                "end the sandbox",
                "it is still there after a minute",
            ));
        }
        sleep(END_CHECK_INTERVAL).await;
    }
}

async fn end(host: &ModalState, one: &RunningSandbox) -> Result<(), Status> {
    let question = SandboxTerminateRequest {
        sandbox_id: one.key.clone(),
    };
    let asked = async {
        host.control.ask(question, CallTimeouts::QUICK).await?;
        host.result(&one.key, 10).await
    };
    match asked.await {
        Err(status) if status.code() != Code::NotFound => Err(status),
        _ => Ok(()),
    }
}

async fn snapshot(
    host: &Arc<ModalState>,
    standing: &RunningSandbox,
) -> Result<String, BackendError> {
    let router = router(host, &standing.key, None).await?;
    let question = TaskSnapshotFilesystemRequest {
        task_id: router.task.clone(),
        snapshot_id: Uuid::new_v4().to_string(),
        ttl_seconds: Some(KEPT_FOR),
    };
    let taken = router.ask(question, SNAPSHOT).await;
    let taken = taken.map_err(|status| trouble("take a snapshot", &status))?;
    if taken.image_id.is_empty() {
        return Err(BackendError::failed("take a snapshot", "it has no name"));
    }
    Ok(taken.image_id)
}
