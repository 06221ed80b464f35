//! The provider's states, and waiting for them.

use std::time::Duration;

use hermetic_sandbox::{BackendError, FoundState, Persistence};
use tokio::time::{Instant, sleep};

use super::daytona::Host;
use super::label::Owned;
use super::shapes::Sandbox;
use super::trouble::Trouble;

const FIRST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOOK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Started,
    /// No process; the disk is kept.
    Stopped,
    Gone,
    Failed,
    /// On its way up, or to nowhere we know of.
    Coming,
    Going,
}

impl State {
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        match sandbox.state.as_str() {
            "started" => Self::Started,
            "stopped" | "archived" | "paused" => Self::Stopped,
            "destroyed" => Self::Gone,
            "error" | "build_failed" => Self::Failed,
            "stopping" | "pausing" | "archiving" | "destroying" => Self::Going,
            _ => Self::Coming,
        }
    }

    pub(crate) fn found(self, owned: &Owned) -> FoundState {
        match self {
            Self::Started => FoundState::Running,
            Self::Stopped if owned.persistence == Persistence::Kept => FoundState::Stopped,
            Self::Coming if owned.is_being_made() => FoundState::Busy,
            Self::Going => FoundState::Busy,
            Self::Stopped | Self::Gone | Self::Failed | Self::Coming => FoundState::Broken,
        }
    }
}

/// A change that is asked of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Up,
    Down,
}

impl Turn {
    fn from(self) -> State {
        match self {
            Self::Up => State::Stopped,
            Self::Down => State::Started,
        }
    }

    fn to(self) -> State {
        match self {
            Self::Up => State::Started,
            Self::Down => State::Stopped,
        }
    }
}

impl Host {
    /// Looks until a new sandbox runs, with growing pauses and an end.
    pub(crate) async fn wait_until_started(
        &self,
        sandbox: Sandbox,
        step: &str,
    ) -> Result<Sandbox, BackendError> {
        let patience = self.config.patience.build;
        self.settle(sandbox, State::Started, None, patience, step)
            .await
    }

    /// Asks for the change until it is taken, and waits for it.
    pub(crate) async fn turn(
        &self,
        turn: Turn,
        sandbox: Sandbox,
        step: &str,
    ) -> Result<Sandbox, BackendError> {
        let patience = self.config.patience.state;
        self.settle(sandbox, turn.to(), Some(turn), patience, step)
            .await
    }

    async fn settle(
        &self,
        mut sandbox: Sandbox,
        wanted: State,
        turn: Option<Turn>,
        patience: Duration,
        step: &str,
    ) -> Result<Sandbox, BackendError> {
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_LOOK;
        loop {
            match State::of(&sandbox) {
                state if state == wanted => return Ok(sandbox),
                State::Failed => return Err(failed(&sandbox, step)),
                State::Gone => return Err(BackendError::failed(step, "Daytona destroyed it")),
                state => {
                    if let Some(turn) = turn.filter(|turn| turn.from() == state) {
                        self.ask_to_turn(turn, &sandbox.id, step).await?;
                    }
                }
            }
            if Instant::now() > deadline {
                return Err(stuck(&sandbox, patience, step));
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_LOOK);
            let looked = self.service.look(&sandbox.id).await;
            sandbox = looked.map_err(|trouble| trouble.at(step))?;
        }
    }

    async fn ask_to_turn(&self, turn: Turn, id: &str, step: &str) -> Result<(), BackendError> {
        let asked = match turn {
            Turn::Up => self.service.start(id).await,
            Turn::Down => self.service.stop(id).await,
        };
        match asked {
            // A change is under way already, which the next look will show.
            Ok(()) | Err(Trouble::Conflict { .. } | Trouble::Refused { .. }) => Ok(()),
            Err(trouble) => Err(trouble.at(step)),
        }
    }
}

fn failed(sandbox: &Sandbox, step: &str) -> BackendError {
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

fn stuck(sandbox: &Sandbox, patience: Duration, step: &str) -> BackendError {
    let state = super::wire::one_line(&sandbox.state, 40);
    BackendError::Unavailable {
        what: format!(
            "cannot {step}: still {state:?} after {} s",
            patience.as_secs()
        ),
        remedy: "look at the sandbox in Daytona's dashboard, or try again".to_owned(),
    }
}
