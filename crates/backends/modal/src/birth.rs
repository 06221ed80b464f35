//! From a spec to a running sandbox with a link into it, or to nothing.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxSpec, WardenLink, launch};
use hermetic_types::SandboxId;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::control::IdempotencyKey;
use crate::find::{RunningSandbox, ended};
use crate::modal::{ModalState, missing};
use crate::patience::{CallTimeouts, RetryAttempts, passes};
use crate::router::CommandRouter;
use crate::trouble::trouble;
use crate::wire::{
    CommandRouterAccess, GenericStatus, ObjectCreation, SandboxCreateRequest, SandboxTag,
    SandboxTagsSetRequest,
};
use crate::{death, image, label, link, shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModalStart {
    Fresh,
    Again,
}

pub(crate) async fn start(
    host: &Arc<ModalState>,
    spec: &SandboxSpec,
    start: ModalStart,
) -> Result<WardenLink, BackendError> {
    let (making, unwanted) = (Arc::clone(host), Arc::clone(host));
    let (wanted, id) = (spec.clone(), spec.id.clone());
    let make = async move {
        match start {
            ModalStart::Fresh => create(&making, &wanted).await,
            ModalStart::Again => resume(&making, &wanted).await,
        }
    };
    let discard = async move {
        match start {
            ModalStart::Fresh => death::destroy(&unwanted, &id).await,
            ModalStart::Again => death::stop(&unwanted, &id).await,
        }
    };
    launch(&spec.id, make, discard).await
}

/// Reaches the warden of one that lives.
pub(crate) async fn connect(
    host: &Arc<ModalState>,
    id: &SandboxId,
) -> Result<WardenLink, BackendError> {
    let standing = host.standing(Some(id)).await?.into_iter().next();
    let standing = standing.ok_or_else(|| missing(id))?;
    join(host, &standing).await
}

async fn join(
    host: &Arc<ModalState>,
    standing: &RunningSandbox,
) -> Result<WardenLink, BackendError> {
    let router = router(host, &standing.key, None).await?;
    link::reach(&router, &standing.owned.start).await
}

async fn create(host: &Arc<ModalState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let name = shape::check(spec)?;
    let image = image::provide(host, name).await?;
    let born = bear(host, spec, image).await;
    if born.is_err() {
        // One that was cleared away at Modal since is built again by the next.
        image::forget(host, name).await;
    }
    born.map_err(NotBorn::into_error)
}

/// With the files it was stopped with; with those of its image where Modal has them no longer.
async fn resume(host: &Arc<ModalState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let name = shape::check(spec)?;
    // Looked at first: a resume whose answer was lost has made one, and a second of the name cannot
    // be.
    if let Some(standing) = host.standing(Some(&spec.id)).await?.first() {
        return join(host, standing).await;
    }
    let snapshot = host.snapshots.get(&spec.id).await?;
    let snapshot = snapshot.ok_or_else(|| missing(&spec.id))?;
    match bear(host, spec, snapshot.clone()).await {
        Err(NotBorn::Unusable(error)) => {
            tracing::warn!(
                sandbox = %spec.id,
                %snapshot,
                %error,
                "the snapshot cannot be restored: its files are lost, and the image is used instead"
            );
            // Forgotten before the image is used: the next stop writes a new one, and until then
            // there is none to come back to.
            host.snapshots.remove(&spec.id).await?;
            let image = image::provide(host, name).await?;
            bear(host, spec, image).await.map_err(NotBorn::into_error)
        }
        born => born.map_err(NotBorn::into_error),
    }
}

/// Why there is no sandbox.
enum NotBorn {
    /// The image cannot be started: another attempt with it ends the same.
    Unusable(BackendError),
    /// There is one of that name already.
    Taken(BackendError),
    Failed(BackendError),
}

impl NotBorn {
    fn into_error(self) -> BackendError {
        match self {
            Self::Unusable(error) | Self::Taken(error) | Self::Failed(error) => error,
        }
    }
}

/// Leaves nothing where it fails, as far as Modal lets us.
async fn bear(
    host: &Arc<ModalState>,
    spec: &SandboxSpec,
    image: String,
) -> Result<WardenLink, NotBorn> {
    let birth = SandboxStart::of(host, spec, image).await?;
    let born = match birth.make(host, spec).await {
        Ok(made) => birth.bring_up(host, &made).await,
        Err(error) => Err(error),
    };
    // Not where the name was taken: what has it is another's, or an earlier start that somebody
    // still uses.
    if let Err(NotBorn::Unusable(_) | NotBorn::Failed(_)) = &born {
        death::clear(host, &spec.id).await;
    }
    born
}

/// One start of one sandbox.
struct SandboxStart {
    start: String,
    tags: Vec<SandboxTag>,
    request: SandboxCreateRequest,
}

/// What Modal made of it.
struct CreatedSandbox {
    key: String,
    task: Option<String>,
    access: Option<CommandRouterAccess>,
}

/// A create that gets no answer for so long is looked after, and given up after the second time.
const CREATE: CallTimeouts = CallTimeouts::of(90, 240);
/// A request whose answer was lost may still be under way.
const LATECOMER: Duration = Duration::from_millis(500);

impl SandboxStart {
    async fn of(host: &ModalState, spec: &SandboxSpec, image: String) -> Result<Self, NotBorn> {
        let app = host.app(ObjectCreation::CreateIfMissing).await;
        let app = app.map_err(|status| NotBorn::Failed(trouble("find the app", &status)))?;
        let start: String = Uuid::new_v4().simple().to_string().split_off(16);
        let tags = label::of(spec, &start);
        let outbound = &host.config.outbound;
        let definition = shape::definition(spec, image, &start, &host.program, outbound);
        let request = SandboxCreateRequest {
            app_id: app.unwrap_or_default(),
            definition: Some(definition),
            tags: tags.clone(),
            secret_sources: shape::variables(spec),
        };
        Ok(Self {
            start,
            tags,
            request,
        })
    }

    /// Never asked for twice without a look whether the first was heard.
    async fn make(&self, host: &ModalState, spec: &SandboxSpec) -> Result<CreatedSandbox, NotBorn> {
        let key = IdempotencyKey::random();
        let mut attempts = RetryAttempts::within(CREATE.whole);
        loop {
            let asked = host
                .control
                // Asked once and looked after by ourselves: a client that repeats a create by
                // itself can make two.
                .ask_once(self.request.clone(), &key, attempts.made, CREATE);
            let status = match asked.await {
                Ok(made) => {
                    return Ok(CreatedSandbox {
                        key: made.sandbox_id,
                        task: Some(made.task_id).filter(|task| !task.is_empty()),
                        access: made.command_router_access,
                    });
                }
                Err(status) => status,
            };
            let taken = status.code() == Code::AlreadyExists;
            if taken || passes(&status) {
                tokio::time::sleep(LATECOMER).await;
                if let Some(made) = self.heard(host, spec).await? {
                    return Ok(made);
                }
            }
            if taken {
                return Err(NotBorn::Taken(BackendError::Refused {
                    what: format!("sandbox {}", spec.id),
                    why: "the id is taken".to_owned(),
                }));
            }
            attempts
                .after(status)
                .await
                .map_err(|status| not_made(&status))?;
        }
    }

    /// This very start, if Modal made it all the same.
    async fn heard(
        &self,
        host: &ModalState,
        spec: &SandboxSpec,
    ) -> Result<Option<CreatedSandbox>, NotBorn> {
        let standing = host
            .standing(Some(&spec.id))
            .await
            .map_err(NotBorn::Failed)?;
        let own = standing
            .into_iter()
            // By the start and not by the name: only this one is known to hold our variables and
            // our warden.
            .find(|one| one.owned.start == self.start);
        Ok(own.map(|own| CreatedSandbox {
            key: own.key,
            task: None,
            access: None,
        }))
    }

    async fn bring_up(
        &self,
        host: &Arc<ModalState>,
        made: &CreatedSandbox,
    ) -> Result<WardenLink, NotBorn> {
        let way = made.task.clone().zip(made.access.clone());
        let reached = async {
            let router = router(host, &made.key, way).await?;
            link::place(&router, &host.program).await?;
            let link = link::reach(&router, &self.start).await?;
            // Last: until then whoever lists takes it for one that is being made, and leaves it to
            // us.
            self.mark_ready(host, &made.key).await?;
            Ok(link)
        };
        match reached.await {
            Ok(link) => Ok(link),
            // Why it ended says more than that the link could not be made.
            Err(error) => Err(match host.result(&made.key, 0).await {
                Ok(Some(result)) if result.status() == GenericStatus::InitFailure => {
                    NotBorn::Unusable(ended(&result))
                }
                Ok(Some(result)) => NotBorn::Failed(ended(&result)),
                _ => NotBorn::Failed(error),
            }),
        }
    }

    async fn mark_ready(&self, host: &ModalState, key: &str) -> Result<(), BackendError> {
        let question = SandboxTagsSetRequest {
            sandbox_id: key.to_owned(),
            tags: label::ready(self.tags.clone()),
        };
        let marked = host.control.ask(question, CallTimeouts::QUICK).await;
        marked.map_err(|status| trouble("tag the sandbox", &status))?;
        Ok(())
    }
}

pub(crate) async fn router(
    host: &Arc<ModalState>,
    key: &str,
    way: Option<(String, CommandRouterAccess)>,
) -> Result<Arc<CommandRouter>, BackendError> {
    let (task, access) = match way {
        Some((task, access)) => (task, Some(access)),
        None => (host.task(key).await?, None),
    };
    let router = CommandRouter::new(Arc::clone(&host.control), key.to_owned(), task, access);
    let router = router.map_err(|status| trouble("reach the sandbox", &status))?;
    Ok(Arc::new(router))
}

fn not_made(status: &Status) -> NotBorn {
    let error = trouble("make a sandbox", status);
    match status.code() {
        Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition => {
            NotBorn::Unusable(error)
        }
        _ => NotBorn::Failed(error),
    }
}
