//! Seeing a sandbox out: by its name, and finished only when it is seen to be gone.

use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::SandboxId;
use tokio::time::{Instant, sleep};

use super::daytona::{DaytonaState, missing};
use super::state::PowerChange;
use super::trouble::DaytonaTrouble;

const FIRST_GONE_CHECK: Duration = Duration::from_millis(100);
const LONGEST_GONE_CHECK: Duration = Duration::from_secs(2);

/// Ends every process and keeps the files of a kept one; any other is destroyed.
pub(crate) async fn stop(host: &DaytonaState, id: &SandboxId) -> Result<(), BackendError> {
    let step = "stop the sandbox";
    let found = host.find(id).await?;
    let (sandbox, owned) = found.ok_or_else(|| missing(id))?;
    if owned.persistence != SandboxPersistence::Kept {
        return destroy(host, id).await;
    }
    host.turn(PowerChange::Down, sandbox, step).await.map(drop)
}

pub(crate) async fn destroy(host: &DaytonaState, id: &SandboxId) -> Result<(), BackendError> {
    let step = "delete the sandbox";
    let patience = host.config.patience.state;
    let deadline = Instant::now() + patience;
    let mut pause = FIRST_GONE_CHECK;
    let mut said = "Daytona takes its time".to_owned();
    // Asked again until it is gone: one that is on its way to another state refuses.
    while let Some((sandbox, _)) = host.find(id).await? {
        if sandbox.state != "destroying" {
            match host.service.delete(&sandbox.id).await {
                Ok(()) | Err(DaytonaTrouble::Missing) => {}
                Err(
                    DaytonaTrouble::Conflict { said: why } | DaytonaTrouble::Refused { said: why },
                ) => said = why,
                Err(trouble) => return Err(trouble.at(step)),
            }
        }
        if Instant::now() > deadline {
            let seconds = patience.as_secs();
            return Err(BackendError::failed(
                step,
                format!("it is still there after {seconds} s: {said}"),
            ));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_GONE_CHECK);
    }
    Ok(())
}

/// After a failure, when there is nobody to tell about another one.
pub(crate) async fn clear(host: &DaytonaState, id: &SandboxId) {
    if let Err(error) = destroy(host, id).await {
        tracing::warn!(sandbox = %id, %error, "a failed start left a sandbox");
    }
}
