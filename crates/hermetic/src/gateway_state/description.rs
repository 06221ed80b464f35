//! What a gateway says of itself, with the names that Hermes gave these things.

use std::collections::BTreeMap;
use std::fs;

use hermetic_sandbox::{LayerState, SealLayer};
use hermetic_types::{BackendKind, Clock as _, PartHealth, SystemClock};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GatewayState {
    pub(crate) pid: u32,
    /// When the kernel says that process began: a later one may get the same pid.
    pub(crate) born: u64,
    /// Seconds since 1970.
    pub(crate) started: u64,
    pub(crate) run: String,
    pub(crate) version: String,
    pub(crate) backend: String,
    pub(crate) image: Option<String>,
    #[serde(rename = "gateway_state")]
    pub(crate) stage: LifeStage,
    pub(crate) exit_reason: Option<String>,
    /// Conversations with a turn at work.
    pub(crate) active_agents: usize,
    pub(crate) platforms: BTreeMap<String, PlatformState>,
    /// How each part is.
    #[serde(default)]
    pub(crate) parts: BTreeMap<String, PartHealth>,
    /// What bounds memory and disk of its sandboxes, as it saw that when it started.
    #[serde(default)]
    pub(crate) limits: Vec<KeptLimit>,
    /// The unit that keeps it, if one does.
    pub(crate) service: Option<String>,
}

/// One limit of the sandboxes of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLimit {
    pub(crate) backend: String,
    /// As `hermetic doctor` calls it.
    pub(crate) name: String,
    /// Whether the kernel or an engine keeps it; otherwise it is kept by a weaker means, or not at all.
    pub(crate) is_kept: bool,
    /// How, or why not.
    pub(crate) detail: String,
}

impl KeptLimit {
    pub(crate) fn of(backend: BackendKind, layer: SealLayer) -> Self {
        Self {
            backend: backend.to_string(),
            name: layer.name.to_owned(),
            is_kept: layer.state == LayerState::Active,
            detail: layer.detail,
        }
    }

    /// In one line for a person.
    pub(crate) fn line(&self) -> String {
        let holds = match self.is_kept {
            true => "holds",
            false => "weaker",
        };
        format!("{} on {} {holds}: {}", self.name, self.backend, self.detail)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LifeStage {
    Starting,
    /// Another gateway serves; this one takes its place when that ends.
    StandingBy,
    Running,
    Draining,
    Stopped,
    StartupFailed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlatformState {
    pub(crate) state: String,
    pub(crate) error: Option<String>,
}

impl GatewayState {
    pub(crate) fn of_this_process(run: String, backend: String, image: Option<String>) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            born: born(pid).unwrap_or_default(),
            started: Self::now(),
            run,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend,
            image,
            stage: LifeStage::Starting,
            exit_reason: None,
            active_agents: 0,
            platforms: BTreeMap::new(),
            parts: BTreeMap::new(),
            limits: Vec::new(),
            service: None,
        }
    }

    pub(crate) fn now() -> u64 {
        u64::try_from(SystemClock.now().seconds()).unwrap_or_default()
    }

    /// Whether the process of this number is the one that said this.
    pub(crate) fn is_of_living(&self) -> bool {
        born(self.pid).is_some_and(|born| born == self.born)
    }
}

impl LifeStage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::StandingBy => "standing by",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::StartupFailed => "startup_failed",
        }
    }
}

/// In ticks since the machine started; `None` for no such process.
fn born(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name that may hold anything, also spaces and brackets.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_birth() {
        let mut state = GatewayState::of_this_process("r".into(), "native".into(), None);
        assert!(state.born > 0 && state.is_of_living());
        state.born += 1;
        assert!(!state.is_of_living());
    }

    #[test]
    fn its_names_are_those_of_hermes() {
        let state = GatewayState::of_this_process("r".into(), "native".into(), None);
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!(json["gateway_state"], "starting");
        for key in ["exit_reason", "active_agents", "platforms", "pid"] {
            assert!(json.get(key).is_some(), "{key}");
        }
    }
}
