//! Ledger and world side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use hermetic_sandbox::{Backend, FoundState};
use hermetic_store::{Entry, Ledger};
use hermetic_types::{BackendKind, ConversationKey, SandboxId};
use serde::Serialize;
use tracing::warn;

use crate::failure::Failure;
use crate::output::BOLD;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) id: SandboxId,
    pub(super) conversation: Option<ConversationKey>,
    #[serde(rename = "backend", serialize_with = "kind")]
    pub(super) backend: Arc<dyn Backend>,
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
    /// What `prune` may take: nothing a conversation still counts on.
    pub(super) fn is_rubbish(&self, stopped: bool) -> bool {
        match self.state {
            State::Running | State::Busy | State::Unknown => false,
            State::Stopped => stopped,
            State::Broken | State::Gone => true,
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
        .entries()
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
                backend: Arc::clone(backend),
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
        if let Some(backend) = backends
            .iter()
            .find(|backend| backend.kind() == entry.backend)
        {
            rows.push(Row {
                id: entry.id.clone(),
                conversation: Some(entry.conversation.clone()),
                backend: Arc::clone(backend),
                state: if silent.contains(&entry.backend) {
                    State::Unknown
                } else {
                    State::Gone
                },
                ledger: Some(entry),
            });
        }
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
        let backend: BackendKind = row.backend.kind();
        let _ = writeln!(
            text,
            "{:16}  {backend:8}  {:8}  {conversation}",
            row.id,
            row.state.name()
        );
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

fn kind<S: serde::Serializer>(backend: &Arc<dyn Backend>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(backend.kind().name())
}
