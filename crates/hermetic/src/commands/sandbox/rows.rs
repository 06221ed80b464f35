//! Ledger and world side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use hermetic_sandbox::{Backend, FoundState, Persistence, Spec};
use hermetic_store::{Entry, Ledger, Owner};
use hermetic_types::{BackendKind, ConversationKey, SandboxId};
use serde::Serialize;
use tracing::warn;

use crate::failure::Failure;
use crate::output::BOLD;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) id: SandboxId,
    pub(super) conversation: Option<ConversationKey>,
    #[serde(rename = "backend")]
    pub(super) kind: BackendKind,
    /// Absent where it cannot be opened here and now.
    #[serde(skip)]
    backend: Option<Arc<dyn Backend>>,
    pub(super) state: State,
    /// What the ledger says; absent for one it does not know.
    pub(super) ledger: Option<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Running,
    Stopped,
    /// Being made or unmade at this moment.
    Busy,
    Broken,
    /// In the ledger, and nothing of it exists.
    Gone,
    /// In the ledger, and its backend does not answer.
    Unknown,
}

impl Row {
    /// Where it is, to act on it there.
    pub(super) fn backend(&self) -> Result<&Arc<dyn Backend>, Failure> {
        self.backend.as_ref().ok_or_else(|| {
            let kind = self.kind;
            Failure::new(
                format!(
                    "the {kind} backend, which sandbox {} is on, cannot be opened",
                    self.id
                ),
                format!("`hermetic doctor --backend {kind}` tells what is missing"),
            )
        })
    }

    /// Its files are kept while its conversation has another sandbox.
    fn is_set_aside(&self) -> bool {
        let ledger = self.ledger.as_ref();
        ledger.is_some_and(|entry| entry.set_aside_at.is_some())
    }

    /// Whether it was made to outlive a stop.
    fn keeps_files(&self) -> bool {
        let spec = self.ledger.as_ref().map(|entry| entry.spec.as_str());
        let spec = spec.and_then(|spec| serde_json::from_str::<Spec>(spec).ok());
        spec.is_some_and(|spec| spec.persistence == Persistence::Kept)
    }

    /// What `prune` may take: nothing a conversation still counts on.
    pub(super) fn is_rubbish(&self, stopped: bool) -> bool {
        match self.state {
            State::Running | State::Busy | State::Unknown => false,
            State::Stopped => stopped,
            // What is not found here may be found by the configuration of before.
            State::Gone => stopped || !(self.is_set_aside() || self.keeps_files()),
            State::Broken => true,
        }
    }
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Busy => "busy",
            Self::Broken => "broken",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }
}

pub(super) async fn gather(
    backends: &[Arc<dyn Backend>],
    ledger: &Ledger,
) -> Result<Vec<Row>, Failure> {
    let mut entries: BTreeMap<SandboxId, Entry> = ledger
        .entries(Owner::AnyGateway)
        .await?
        .into_iter()
        .map(|entry| (entry.id.clone(), entry))
        .collect();
    let mut rows = Vec::new();
    let mut silent = Vec::new();
    for backend in backends {
        let found = match backend.list().await {
            Ok(found) => found,
            Err(error) => {
                // One that nobody uses need not be there.
                if entries
                    .values()
                    .any(|entry| entry.backend == backend.kind())
                {
                    warn!(backend = %backend.kind(), %error, "its sandboxes cannot be listed");
                }
                silent.push(backend.kind());
                continue;
            }
        };
        for found in found {
            let entry = entries.remove(&found.id);
            rows.push(Row {
                // The ledger knows better: one that waited was given to somebody since it was made.
                conversation: entry
                    .as_ref()
                    .map(|entry| entry.conversation.clone())
                    .or(found.conversation),
                id: found.id,
                kind: backend.kind(),
                backend: Some(Arc::clone(backend)),
                state: match found.state {
                    FoundState::Running => State::Running,
                    FoundState::Stopped => State::Stopped,
                    FoundState::Busy => State::Busy,
                    FoundState::Broken => State::Broken,
                },
                ledger: entry,
            });
        }
    }
    for entry in entries.into_values() {
        let mut all = backends.iter();
        let backend = all.find(|backend| backend.kind() == entry.backend);
        let answered = backend.is_some() && !silent.contains(&entry.backend);
        rows.push(Row {
            id: entry.id.clone(),
            conversation: Some(entry.conversation.clone()),
            kind: entry.backend,
            backend: backend.cloned(),
            state: match answered {
                true => State::Gone,
                false => State::Unknown,
            },
            ledger: Some(entry),
        });
    }
    Ok(rows)
}

pub(super) fn find<'a>(rows: &'a [Row], id: &SandboxId) -> Result<&'a Row, Failure> {
    rows.iter().find(|row| &row.id == id).ok_or_else(|| {
        Failure::new(
            format!("no sandbox {id} in this home"),
            "see `hermetic sandbox list`",
        )
    })
}

pub(super) fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No sandboxes.\n".to_owned();
    }
    let mut text = format!(
        "{BOLD}{:16}  {:8}  {:8}  CONVERSATION{BOLD:#}\n",
        "ID", "BACKEND", "STATE"
    );
    for row in rows {
        let conversation = row
            .conversation
            .as_ref()
            .map_or("-", ConversationKey::as_str);
        let backend = row.kind;
        let _ = writeln!(
            text,
            "{:16}  {backend:8}  {:8}  {conversation}",
            row.id,
            row.state.name()
        );
        if row.is_set_aside() {
            let _ = writeln!(
                text,
                "{:16}  set aside: its files are kept, and its conversation has another sandbox",
                ""
            );
        }
        if let Some(failure) = row
            .ledger
            .as_ref()
            .and_then(|entry| entry.last_failure.as_ref())
        {
            let _ = writeln!(text, "{:16}  could not be removed: {failure}", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermetic_sandbox::{Lifeline, Network, SystemView};
    use hermetic_store::LedgerState;
    use hermetic_types::{InstallationId, Limits, Timestamp};

    use super::*;

    fn entry(persistence: Persistence) -> Entry {
        let (id, conversation) = (SandboxId::random(), ConversationKey::new("chat"));
        let spec = Spec {
            installation: InstallationId::random(),
            conversation: conversation.clone(),
            id: id.clone(),
            system: SystemView::Host,
            limits: Limits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: Network::Closed,
            persistence,
            lifeline: Lifeline::Ledger,
            lifetime: Duration::from_secs(60),
        };
        Entry {
            id,
            conversation,
            backend: BackendKind::Docker,
            state: LedgerState::Stopped,
            spec: serde_json::to_string(&spec).expect("a spec can be written"),
            named_at: Timestamp::from_millis(1),
            touched_at: Timestamp::from_millis(1),
            failures: 0,
            last_failure: None,
            set_aside_at: None,
        }
    }

    fn row(state: State, ledger: Option<Entry>) -> Row {
        Row {
            id: SandboxId::random(),
            conversation: None,
            kind: BackendKind::Docker,
            backend: None,
            state,
            ledger,
        }
    }

    #[test]
    fn prune_forgets_no_files_that_another_configuration_may_find() {
        let kept = || entry(Persistence::Kept);
        let set_aside = Entry {
            set_aside_at: Some(Timestamp::from_millis(2)),
            ..kept()
        };
        for entry in [kept(), set_aside] {
            let gone = row(State::Gone, Some(entry));
            assert!(
                !gone.is_rubbish(false),
                "kept files are forgotten: {gone:?}"
            );
            assert!(gone.is_rubbish(true), "asked for, they are");
        }
        assert!(row(State::Gone, Some(entry(Persistence::Ephemeral))).is_rubbish(false));
        assert!(row(State::Broken, Some(kept())).is_rubbish(false));
    }

    #[test]
    fn prune_takes_nothing_that_runs_or_does_not_answer() {
        for state in [State::Running, State::Busy, State::Unknown] {
            assert!(!row(state, None).is_rubbish(true), "{state:?}");
        }
        assert!(!row(State::Stopped, None).is_rubbish(false));
        assert!(row(State::Stopped, None).is_rubbish(true));
    }
}
