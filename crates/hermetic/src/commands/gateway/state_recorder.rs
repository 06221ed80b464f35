//! Keeps the description of a running gateway true, and tells whoever started it.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_chat::ChatState;
use hermetic_gateway::GatewayCondition;
use sd_notify::NotifyState;
use tracing::{info, warn};

use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayLock, GatewayState, KeptLimit, LifeStage, PlatformState};

/// The line a starter waits for.
pub(super) const READY: &str = "ready\n";

#[derive(Debug)]
pub(super) struct StateRecorder {
    lock: GatewayLock,
    state: Mutex<GatewayState>,
    /// Whether somebody reads our stdout for that line.
    awaited: bool,
}

impl StateRecorder {
    /// `state` is what stands in the description already.
    pub(super) fn begin(lock: GatewayLock, state: GatewayState, awaited: bool) -> Self {
        Self {
            lock,
            state: Mutex::new(state),
            awaited,
        }
    }

    pub(super) fn note(&self, condition: &GatewayCondition) {
        let mut state = self.state();
        let before = state.stage;
        let connected_before = connected(&state);
        state.stage = match condition.stage {
            hermetic_gateway::GatewayStage::Starting => LifeStage::Starting,
            hermetic_gateway::GatewayStage::Serving => LifeStage::Running,
            hermetic_gateway::GatewayStage::Draining => LifeStage::Draining,
        };
        state.active_agents = condition.active;
        state.platforms = condition
            .accounts
            .iter()
            .map(|(account, state)| (account.to_string(), described(state)))
            .collect();
        state.parts = condition
            .parts
            .iter()
            .map(|part| (part.name.clone(), part.health.clone()))
            .collect();
        self.write(&state);
        // To connect takes code and memory that a connection does not need afterwards.
        if state.stage == LifeStage::Running && connected(&state) > connected_before {
            let_go_of_startup();
        }
        let is_degraded = state.parts.values().any(|health| !health.is_ok());
        match (before, state.stage) {
            // After it was written down: whoever hears of it may look at the description at once.
            (LifeStage::Starting, LifeStage::Running) => self.ready(),
            // It waits for room, as long as that takes; systemd would end it for being late.
            (LifeStage::Starting, LifeStage::Starting) if is_degraded => {
                tell_systemd(NotifyState::Ready);
            }
            (LifeStage::Running, LifeStage::Draining) => tell_systemd(NotifyState::Stopping),
            _ => {}
        }
    }

    /// Another gateway serves. Whoever started this one has nothing more to wait for: that may go on for months.
    pub(super) fn stands_by(&self) {
        let mut state = self.state();
        state.stage = LifeStage::StandingBy;
        self.write(&state);
        tell_systemd(NotifyState::Ready);
        tell_systemd(NotifyState::Status("standing by for another gateway"));
        self.tell_starter();
    }

    /// What bounds memory and disk of its sandboxes, for whoever looks at the description.
    pub(super) fn note_limits(&self, limits: Vec<KeptLimit>) {
        let mut state = self.state();
        state.limits = limits;
        self.write(&state);
    }

    pub(super) fn end(self, ended: &Result<(), CommandFailure>) {
        let mut state = self.state();
        state.stage = match (ended, state.stage) {
            (Err(_), LifeStage::Starting | LifeStage::StandingBy) => LifeStage::StartupFailed,
            _ => LifeStage::Stopped,
        };
        state.exit_reason = Some(match ended {
            Ok(()) => "asked to".to_owned(),
            Err(failure) => failure.to_string(),
        });
        state.active_agents = 0;
        state.platforms.clear();
        state.parts.clear();
        state.limits.clear();
        self.write(&state);
    }

    fn ready(&self) {
        info!("ready");
        let_go_of_startup();
        tell_systemd(NotifyState::Ready);
        tell_systemd(NotifyState::Status("serving"));
        self.tell_starter();
    }

    fn tell_starter(&self) {
        if !self.awaited {
            return;
        }
        // A starter who was interrupted meanwhile does not read it any more.
        let _ = std::io::stdout().write_all(READY.as_bytes());
        let _ = std::io::stdout().flush();
        if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(nowhere);
        }
    }

    fn write(&self, state: &GatewayState) {
        if let Err(error) = self.lock.describe(state) {
            warn!(%error, "the description of this gateway could not be written");
        }
    }

    fn state(&self) -> MutexGuard<'_, GatewayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many accounts are connected.
fn connected(state: &GatewayState) -> usize {
    let states = state.platforms.values();
    states
        .filter(|platform| platform.state == "connected")
        .count()
}

/// Gives back the memory that only a start needs.
fn let_go_of_startup() {
    hermetic_warden::sys::give_back_freed_memory();
    hermetic_warden::sys::let_go_of_startup_code();
}

/// Where systemd did not start us this does nothing.
pub(super) fn tell_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(%error, "systemd could not be told");
    }
}

fn described(state: &ChatState) -> PlatformState {
    let (state, error) = match state {
        ChatState::Starting => ("starting", None),
        ChatState::Connected => ("connected", None),
        ChatState::Retrying { why } => ("retrying", Some(why)),
        ChatState::Stopped { why } => ("stopped", Some(why)),
    };
    PlatformState {
        state: state.to_owned(),
        error: error.cloned(),
    }
}
