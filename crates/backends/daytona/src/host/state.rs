//! The provider's states, and waiting for them.

use std::time::Duration;

use hermetic_sandbox::{BackendError, FoundState, SandboxPersistence};
use tokio::time::{Instant, sleep};

use super::daytona::DaytonaState;
use super::label::OwnedLabels;
use super::shapes::DaytonaSandbox;
use super::trouble::DaytonaTrouble;

const FIRST_STATE_CHECK: Duration = Duration::from_millis(100);
const LONGEST_STATE_CHECK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderState {
    Started,
    /// No process; the disk is kept.
    Stopped,
    Gone,
    Failed,
    /// On its way up, or to nowhere we know of.
    Coming,
    Going,
}

impl ProviderState {
    pub(crate) fn of(sandbox: &DaytonaSandbox) -> Self {
        match sandbox.state.as_str() {
            "started" => Self::Started,
            "stopped" | "archived" | "paused" => Self::Stopped,
            "destroyed" => Self::Gone,
            "error" | "build_failed" => Self::Failed,
            "stopping" | "pausing" | "archiving" | "destroying" => Self::Going,
            _ => Self::Coming,
        }
    }

    pub(crate) fn found(self, owned: &OwnedLabels) -> FoundState {
        match self {
            Self::Started => FoundState::Running,
            Self::Stopped if owned.persistence == SandboxPersistence::Kept => FoundState::Stopped,
            Self::Coming if owned.is_being_made() => FoundState::Busy,
            Self::Going => FoundState::Busy,
            Self::Stopped | Self::Gone | Self::Failed | Self::Coming => FoundState::Broken,
        }
    }
}

/// A change that is asked of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerChange {
    Up,
    Down,
}

impl PowerChange {
    fn from(self) -> ProviderState {
        match self {
            Self::Up => ProviderState::Stopped,
            Self::Down => ProviderState::Started,
        }
    }

    fn to(self) -> ProviderState {
        match self {
            Self::Up => ProviderState::Started,
            Self::Down => ProviderState::Stopped,
        }
    }
}

impl DaytonaState {
    /// Looks until a new sandbox runs, with growing pauses and an end.
    pub(crate) async fn wait_until_started(
        &self,
        sandbox: DaytonaSandbox,
        step: &str,
    ) -> Result<DaytonaSandbox, BackendError> {
        let patience = self.config.patience.build;
        self.settle(sandbox, ProviderState::Started, None, patience, step)
            .await
    }

    /// Asks for the change until it is taken, and waits for it.
    pub(crate) async fn turn(
        &self,
        turn: PowerChange,
        sandbox: DaytonaSandbox,
        step: &str,
    ) -> Result<DaytonaSandbox, BackendError> {
        let patience = self.config.patience.state;
        self.settle(sandbox, turn.to(), Some(turn), patience, step)
            .await
    }

    async fn settle(
        &self,
        mut sandbox: DaytonaSandbox,
        wanted: ProviderState,
        turn: Option<PowerChange>,
        patience: Duration,
        step: &str,
    ) -> Result<DaytonaSandbox, BackendError> {
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_STATE_CHECK;
        loop {
            match ProviderState::of(&sandbox) {
                state if state == wanted => return Ok(sandbox),
                ProviderState::Failed => return Err(failed(&sandbox, step)),
                ProviderState::Gone => {
                    return Err(BackendError::failed(step, "Daytona destroyed it"));
                }
                state => {
                    // Only from where the change begins: one that is on its way already is waited
                    // for.
                    if let Some(turn) = turn.filter(|turn| turn.from() == state) {
                        self.ask_to_turn(turn, &sandbox.id, step).await?;
                    }
                }
            }
            if Instant::now() > deadline {
                return Err(stuck(&sandbox, patience, step));
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_STATE_CHECK);
            let looked = self.service.look(&sandbox.id).await;
            sandbox = looked.map_err(|trouble| trouble.at(step))?;
        }
    }

    async fn ask_to_turn(
        &self,
        turn: PowerChange,
        id: &str,
        step: &str,
    ) -> Result<(), BackendError> {
        let asked = match turn {
            PowerChange::Up => self.service.start(id).await,
            PowerChange::Down => self.service.stop(id).await,
        };
        match asked {
            // A change is under way already, which the next look will show.
            Ok(()) | Err(DaytonaTrouble::Conflict { .. } | DaytonaTrouble::Refused { .. }) => {
                Ok(())
            }
            Err(trouble) => Err(trouble.at(step)),
        }
    }
}

fn failed(sandbox: &DaytonaSandbox, step: &str) -> BackendError {
    let why = sandbox
        .error_reason
        .as_deref()
        .unwrap_or("without a reason");
    let why = super::wire::one_line(why, 300);
    BackendError::Unavailable {
        what: format!("cannot {step}: Daytona says {} ({why})", sandbox.state),
        remedy:
            "check the image in terminal.daytona_image; Daytona's dashboard has the build's log"
                .to_owned(),
    }
}

fn stuck(sandbox: &DaytonaSandbox, patience: Duration, step: &str) -> BackendError {
    let state = super::wire::one_line(&sandbox.state, 40);
    BackendError::Unavailable {
        what: format!(
            "cannot {step}: still {state:?} after {} s",
            patience.as_secs()
        ),
        remedy: "look at the sandbox in Daytona's dashboard, or try again".to_owned(),
    }
}
