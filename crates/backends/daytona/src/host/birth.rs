//! From a spec to a running sandbox with a link into it, or to nothing.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{
    BackendError, SandboxPersistence, SandboxSpec, SystemView, WardenLink, launch,
};
use tokio::time::{Instant, sleep};

use super::daytona::{DaytonaState, missing};
use super::death;
use super::label;
use super::link;
use super::place;
use super::shapes::{BuildInfo, CreateSandbox, DaytonaSandbox};
use super::size::{SandboxSize, minutes};
use super::state::{PowerChange, ProviderState};
use super::terminal::ReachError;
use super::toolbox::DaytonaToolbox;
use super::trouble::DaytonaTrouble;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaytonaStart {
    Fresh,
    Again,
}

/// After a stop of a sandbox whose files are not kept, and of one whose are.
const AT_ONCE: i64 = 0;
const NEVER: i64 = -1;

const CREATE_RETRY_PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn start(
    host: &Arc<DaytonaState>,
    spec: &SandboxSpec,
    start: DaytonaStart,
) -> Result<WardenLink, BackendError> {
    if start == DaytonaStart::Fresh {
        // Refused before anything is asked for: there is nothing at the provider to look for and take away.
        SandboxSize::of(&spec.limits, host.config.disk)?;
    }
    let (making, unwanted) = (Arc::clone(host), Arc::clone(host));
    let (wanted, id) = (spec.clone(), spec.id.clone());
    let make = async move {
        match start {
            DaytonaStart::Fresh => create(&making, &wanted).await,
            DaytonaStart::Again => resume(&making, &wanted).await,
        }
    };
    let discard = async move {
        match start {
            DaytonaStart::Fresh => death::destroy(&unwanted, &id).await,
            DaytonaStart::Again => death::stop(&unwanted, &id).await,
        }
    };
    launch(&spec.id, make, discard).await
}

async fn create(host: &Arc<DaytonaState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let birth = uuid::Uuid::new_v4().to_string();
    let wanted = wanted(host, spec, &birth)?;
    let made = match make(host, &wanted, &birth).await {
        Ok(made) => made,
        Err(failed) => {
            // An answer that never came may hide a sandbox that did.
            if failed.leaves_rest {
                death::clear(host, &spec.id).await;
            }
            return Err(failed.error);
        }
    };
    let born = bring_up(host, spec, made).await;
    if born.is_err() {
        death::clear(host, &spec.id).await;
    }
    born
}

async fn bring_up(
    host: &Arc<DaytonaState>,
    spec: &SandboxSpec,
    made: DaytonaSandbox,
) -> Result<WardenLink, BackendError> {
    let step = "start the sandbox";
    let sandbox = host.wait_until_started(made, step).await?;
    // Judged by what the provider says that it made, and not by what was asked for.
    if sandbox.network_block_all != Some(true) {
        return Err(BackendError::Refused {
            what: "a sandbox with a network of its own".to_owned(),
            why: "Daytona was asked for one without and does not say that it is".to_owned(),
        });
    }
    move_in(host, spec, &sandbox).await
}

/// With the files it was stopped with, and the warden of this program's own version.
async fn resume(host: &Arc<DaytonaState>, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let step = "start the sandbox again";
    let found = host.find(&spec.id).await?;
    let (mut sandbox, _) = found.ok_or_else(|| missing(&spec.id))?;
    if ProviderState::of(&sandbox) == ProviderState::Started {
        // One that lives already is no second start.
        match host.reach(&sandbox).await {
            Ok(link) => return Ok(link),
            Err(ReachError::Nobody { .. }) => {}
            Err(error) => return Err(error.at(step)),
        }
    } else {
        sandbox = host.turn(PowerChange::Up, sandbox, step).await?;
    }
    move_in(host, spec, &sandbox).await
}

async fn move_in(
    host: &Arc<DaytonaState>,
    spec: &SandboxSpec,
    sandbox: &DaytonaSandbox,
) -> Result<WardenLink, BackendError> {
    let toolbox = host.toolbox(sandbox).await?;
    place::place(&toolbox, host.config.program, spec).await?;
    let reached = host.reach(sandbox).await;
    reached.map_err(|error| error.at("reach the warden"))
}

fn wanted(
    host: &DaytonaState,
    spec: &SandboxSpec,
    birth: &str,
) -> Result<CreateSandbox, BackendError> {
    if let Some(mount) = spec.mounts.first() {
        return Err(BackendError::Refused {
            what: format!("showing {} inside", mount.source.display()),
            why: "the sandbox is on a machine of Daytona's, which does not have that folder"
                .to_owned(),
        });
    }
    let size = SandboxSize::of(&spec.limits, host.config.disk)?;
    Ok(CreateSandbox {
        name: label::name(&spec.id),
        labels: label::of(spec, birth),
        build_info: BuildInfo {
            dockerfile_content: format!("FROM {}\n", image_of(spec)?),
        },
        cpu: size.cores,
        memory: size.memory,
        disk: size.disk,
        public: false,
        // Closed or proxied, bytes leave by the link or not at all.
        network_block_all: true,
        auto_stop_interval: minutes(spec.lifetime),
        auto_delete_interval: match spec.persistence {
            SandboxPersistence::Ephemeral => AT_ONCE,
            SandboxPersistence::Kept => NEVER,
        },
        target: host.config.target.clone(),
    })
}

struct FailedCreate {
    error: BackendError,
    leaves_rest: bool,
}

/// Asks for it, and again where the answer was lost: the name is unique, so what was made after all
/// is found by it instead of being made twice.
async fn make(
    host: &DaytonaState,
    wanted: &CreateSandbox,
    birth: &str,
) -> Result<DaytonaSandbox, FailedCreate> {
    let step = "create the sandbox";
    let deadline = Instant::now() + host.config.patience.requests;
    loop {
        let trouble = match host.service.create(wanted).await {
            Ok(made) => return Ok(made),
            Err(trouble) => trouble,
        };
        let is_taken = matches!(trouble, DaytonaTrouble::Conflict { .. });
        if !is_taken && !trouble.leaves_doubt() {
            return Err(FailedCreate {
                error: trouble.at(step),
                leaves_rest: false,
            });
        }
        let rest = |error| FailedCreate {
            error,
            leaves_rest: true,
        };
        match host.service.look(&wanted.name).await {
            Ok(found) if label::is_of_birth(&found.labels, birth) => return Ok(found),
            Ok(found) if ProviderState::of(&found) != ProviderState::Gone => {
                return Err(FailedCreate {
                    error: BackendError::Refused {
                        what: format!("sandbox {}", wanted.name),
                        why: "the name is taken".to_owned(),
                    },
                    leaves_rest: false,
                });
            }
            Ok(_) | Err(DaytonaTrouble::Missing) => {}
            Err(other) => return Err(rest(other.at(step))),
        }
        if Instant::now() + CREATE_RETRY_PAUSE > deadline {
            return Err(rest(trouble.at(step)));
        }
        sleep(CREATE_RETRY_PAUSE).await;
    }
}

fn image_of(spec: &SandboxSpec) -> Result<&str, BackendError> {
    let refused = |why: &str| BackendError::Refused {
        what: "a Daytona sandbox without an image".to_owned(),
        why: why.to_owned(),
    };
    match &spec.system {
        // It becomes a line of a build, which must stay one line.
        SystemView::Image(image)
            if !image.is_empty()
                && !image.contains(|c: char| c.is_whitespace() || c.is_control()) =>
        {
            Ok(image)
        }
        SystemView::Image(_) => Err(refused("an image's name holds no spaces")),
        SystemView::Host | SystemView::Rootfs(_) => Err(refused(
            "name one in terminal.daytona_image, gateway.sandbox_image or --image",
        )),
    }
}

impl DaytonaState {
    pub(crate) async fn toolbox(
        self: &Arc<Self>,
        at: &DaytonaSandbox,
    ) -> Result<DaytonaToolbox, BackendError> {
        let url = self.service.toolbox(at).await;
        let url = url.map_err(|trouble| trouble.at("find the sandbox's toolbox"))?;
        Ok(DaytonaToolbox::new(self, &at.id, url))
    }

    pub(crate) async fn reach(
        self: &Arc<Self>,
        sandbox: &DaytonaSandbox,
    ) -> Result<WardenLink, ReachError> {
        let url = self.service.toolbox(sandbox).await?;
        let minutes = sandbox.auto_stop_interval.unwrap_or_default();
        // Zero is never, and nothing from the wire is taken for a time that cannot be.
        let minutes = if minutes >= 1.0 {
            minutes.min(1e6)
        } else {
            60.0
        };
        let auto_stop = Duration::from_secs_f64(minutes * 60.0);
        link::reach(&DaytonaToolbox::new(self, &sandbox.id, url), auto_stop).await
    }
}
