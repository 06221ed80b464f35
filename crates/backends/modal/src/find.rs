//! Sandboxes of ours that live, found by their tags.

use hermetic_sandbox::{BackendError, FoundState};
use hermetic_types::SandboxId;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::label::{self, SandboxTags};
use crate::modal::ModalState;
use crate::patience::CallTimeouts;
use crate::trouble::{one_line, trouble};
use crate::wire::{
    AppGetOrCreateRequest, GenericResult, ObjectCreation, SandboxGetTaskIdRequest,
    SandboxListRequest, SandboxWaitRequest,
};

/// One that lives, as Modal knows it.
#[derive(Clone, Debug)]
pub(crate) struct RunningSandbox {
    /// Modal's own id: a name could pass on to another, this cannot.
    pub(crate) key: String,
    pub(crate) owned: SandboxTags,
}

/// More than anybody has; a bound for a server that never says that was all.
const MOST_LISTING_PAGES: usize = 100;

/// How long Modal may take to find room for a sandbox.
const UNTIL_PLACED: std::time::Duration = std::time::Duration::from_secs(300);
const LISTING_RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);

impl ModalState {
    /// Those of this installation; all starts of one sandbox where its id is given, a finished one
    /// before one that never was.
    pub(crate) async fn standing(
        &self,
        id: Option<&SandboxId>,
    ) -> Result<Vec<RunningSandbox>, BackendError> {
        let listed = self.listed(id).await;
        let mut standing = listed.map_err(|status| trouble("list the sandboxes", &status))?;
        standing.retain(|one| id.is_none_or(|id| *id == one.owned.id));
        standing.sort_by_key(|one| one.owned.state != FoundState::Running);
        Ok(standing)
    }

    async fn listed(&self, id: Option<&SandboxId>) -> Result<Vec<RunningSandbox>, Status> {
        let mut standing: Vec<RunningSandbox> = Vec::new();
        let Some(app) = self.app(ObjectCreation::LookUp).await? else {
            return Ok(standing);
        };
        let mut before = 0.0;
        for _ in 0..MOST_LISTING_PAGES {
            let question = SandboxListRequest {
                app_id: app.clone(),
                before_timestamp: before,
                include_finished: false,
                tags: label::filter(&self.config.installation, id),
            };
            let page = self
                .control
                .ask(question, CallTimeouts::QUICK)
                .await?
                .sandboxes;
            let Some(oldest) = page.last().map(|one| one.created_at) else {
                break;
            };
            for one in page {
                let owned = SandboxTags::read(&one.tags, &self.config.installation);
                let seen = standing.iter().any(|seen| seen.key == one.id);
                if let Some(owned) = owned.filter(|_| !seen) {
                    standing.push(RunningSandbox { key: one.id, owned });
                }
            }
            // A page that goes no further back than the last one would come for ever.
            if before != 0.0 && oldest >= before {
                break;
            }
            before = oldest;
        }
        Ok(standing)
    }

    /// Nothing where there is no app and none may be made.
    pub(crate) async fn app(&self, creation: ObjectCreation) -> Result<Option<String>, Status> {
        let found = self.app.get_or_try_init(async || {
            let question = AppGetOrCreateRequest {
                app_name: self.config.app.clone(),
                environment_name: self.control.environment().to_owned(),
                object_creation_type: creation.into(),
            };
            let answer = self.control.ask(question, CallTimeouts::QUICK).await?;
            Ok::<_, Status>(answer.app_id)
        });
        match found.await {
            Ok(app) => Ok(Some(app.clone())),
            Err(status)
                if status.code() == Code::NotFound && creation == ObjectCreation::LookUp =>
            {
                Ok(None)
            }
            Err(status) => Err(status),
        }
    }

    /// The task it runs as, once it has one.
    pub(crate) async fn task(&self, key: &str) -> Result<String, BackendError> {
        let deadline = Instant::now() + UNTIL_PLACED;
        loop {
            let question = SandboxGetTaskIdRequest {
                sandbox_id: key.to_owned(),
            };
            let asked = self.control.ask(question, CallTimeouts::QUICK).await;
            let answer = asked.map_err(|status| trouble("find the sandbox", &status))?;
            if let Some(task) = answer.task_id.filter(|task| !task.is_empty()) {
                return Ok(task);
            }
            if let Some(result) = answer.task_result.filter(GenericResult::is_over) {
                return Err(ended(&result));
            }
            if Instant::now() > deadline {
                return Err(BackendError::Unavailable {
                    what: "Modal found no room for the sandbox within five minutes".to_owned(),
                    remedy: "try again later, or with a lower terminal.container_cpu or \
                             container_memory"
                        .to_owned(),
                });
            }
            sleep(LISTING_RETRY_INTERVAL).await;
        }
    }

    /// How it ended, if it did; looked at for up to `seconds`.
    pub(crate) async fn result(
        &self,
        key: &str,
        seconds: u16,
    ) -> Result<Option<GenericResult>, Status> {
        let question = SandboxWaitRequest {
            sandbox_id: key.to_owned(),
            timeout: f32::from(seconds),
        };
        let patience = CallTimeouts::of(u64::from(seconds) + 10, 60);
        let answer = self.control.ask(question, patience).await?;
        Ok(answer.result.filter(GenericResult::is_over))
    }
}

pub(crate) fn ended(result: &GenericResult) -> BackendError {
    let why = match one_line(&result.exception) {
        why if why.is_empty() => format!("{:?}, code {}", result.status(), result.exitcode),
        why => why,
    };
    BackendError::failed("start the sandbox", format!("it ended at once: {why}"))
}
