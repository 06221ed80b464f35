//! Ledger and world side by side.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use hermetic_sandbox::{Backend, FoundSandbox, FoundState, SandboxPersistence, SandboxSpec};
use hermetic_store::{LedgerEntry, RowOwner, SandboxLedger};
use hermetic_types::{BackendKind, ConversationKey, SandboxId, Timestamp};
use serde::Serialize;
use tracing::warn;

use crate::failure::CommandFailure;
use crate::output::{BOLD, size};

#[derive(Debug, Serialize)]
pub(in crate::commands) struct ListedSandbox {
    pub(in crate::commands) id: SandboxId,
    pub(in crate::commands) conversation: Option<ConversationKey>,
    #[serde(rename = "backend")]
    pub(in crate::commands) kind: BackendKind,
    /// Absent where it cannot be opened here and now.
    #[serde(skip)]
    backend: Option<Arc<dyn Backend>>,
    pub(in crate::commands) state: RowState,
    /// What the ledger says; absent for one it does not know.
    pub(in crate::commands) ledger: Option<LedgerEntry>,
    /// What its files take on this machine's disk, where that can be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) disk_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::commands) enum RowState {
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

impl ListedSandbox {
    /// Where it is, to act on it there.
    pub(in crate::commands) fn backend(&self) -> Result<&Arc<dyn Backend>, CommandFailure> {
        self.backend.as_ref().ok_or_else(|| {
            let kind = self.kind;
            CommandFailure::new(
                format!(
                    "the {kind} backend, which sandbox {} is on, cannot be opened",
                    self.id
                ),
                format!("`hermetic doctor --backend {kind}` tells what is missing"),
            )
        })
    }

    fn found(backend: &Arc<dyn Backend>, found: FoundSandbox, entry: Option<LedgerEntry>) -> Self {
        Self {
            // The ledger knows better: one that waited was given to somebody since it was made.
            conversation: entry
                .as_ref()
                .map(|entry| entry.conversation.clone())
                .or(found.conversation),
            id: found.id,
            kind: backend.kind(),
            backend: Some(Arc::clone(backend)),
            state: match found.state {
                FoundState::Running => RowState::Running,
                FoundState::Stopped => RowState::Stopped,
                FoundState::Busy => RowState::Busy,
                FoundState::Broken => RowState::Broken,
            },
            ledger: entry,
            disk_bytes: None,
        }
    }

    /// One that is written down and was not found.
    fn only_in_ledger(
        backend: Option<&Arc<dyn Backend>>,
        entry: LedgerEntry,
        state: RowState,
    ) -> Self {
        Self {
            id: entry.id.clone(),
            conversation: Some(entry.conversation.clone()),
            kind: entry.backend,
            backend: backend.cloned(),
            state,
            ledger: Some(entry),
            disk_bytes: None,
        }
    }

    /// Its files are kept while its conversation has another sandbox.
    fn is_set_aside(&self) -> bool {
        let ledger = self.ledger.as_ref();
        ledger.is_some_and(|entry| entry.set_aside_at.is_some())
    }

    /// Whether it was made to outlive a stop.
    pub(in crate::commands) fn keeps_files(&self) -> bool {
        let spec = self.ledger.as_ref().map(|entry| entry.spec.as_str());
        let spec = spec.and_then(|spec| serde_json::from_str::<SandboxSpec>(spec).ok());
        spec.is_some_and(|spec| spec.persistence == SandboxPersistence::Kept)
    }

    /// What `prune` may take: nothing a conversation still counts on.
    pub(in crate::commands) fn is_rubbish(&self, stopped: bool) -> bool {
        match self.state {
            RowState::Running | RowState::Busy | RowState::Unknown => false,
            RowState::Stopped => stopped,
            // What is not found here may be found by the configuration of before.
            RowState::Gone => stopped || !(self.is_set_aside() || self.keeps_files()),
            RowState::Broken => true,
        }
    }
}

impl RowState {
    pub(in crate::commands) fn name(self) -> &'static str {
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

pub(in crate::commands) async fn gather(
    backends: &[Arc<dyn Backend>],
    ledger: &SandboxLedger,
) -> Result<Vec<ListedSandbox>, CommandFailure> {
    let mut entries: BTreeMap<SandboxId, LedgerEntry> = ledger
        .entries(RowOwner::AnyGateway)
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
            rows.push(ListedSandbox::found(backend, found, entry));
        }
    }
    for entry in entries.into_values() {
        let mut all = backends.iter();
        let backend = all.find(|backend| backend.kind() == entry.backend);
        let answered = backend.is_some() && !silent.contains(&entry.backend);
        let state = match answered {
            true => RowState::Gone,
            false => RowState::Unknown,
        };
        rows.push(ListedSandbox::only_in_ledger(backend, entry, state));
    }
    Ok(rows)
}

/// The same with what each takes on the disk, which takes a walk through its files.
pub(in crate::commands) async fn with_sizes(mut rows: Vec<ListedSandbox>) -> Vec<ListedSandbox> {
    let mut asked: Vec<(Arc<dyn Backend>, Vec<SandboxId>)> = Vec::new();
    for row in &rows {
        let Some(backend) = &row.backend else {
            continue;
        };
        match asked
            .iter_mut()
            .find(|(known, _)| Arc::ptr_eq(known, backend))
        {
            Some((_, ids)) => ids.push(row.id.clone()),
            None => asked.push((Arc::clone(backend), vec![row.id.clone()])),
        }
    }
    let mut sizes = HashMap::new();
    for (backend, ids) in asked {
        sizes.extend(backend.disk_use(&ids).await);
    }
    for row in &mut rows {
        row.disk_bytes = sizes.remove(&row.id);
    }
    rows
}

/// The one that is meant by an id, the beginning of one, the name of a session or the end of a
/// conversation's key. Where two could be meant, neither is.
pub(in crate::commands) fn find<'a>(
    rows: &'a [ListedSandbox],
    meant: &str,
) -> Result<&'a ListedSandbox, CommandFailure> {
    if let Some(exact) = rows.iter().find(|row| row.id.as_str() == meant) {
        return Ok(exact);
    }
    let is_meant = |row: &&ListedSandbox| {
        let key = row.conversation.as_ref().map(ConversationKey::as_str);
        let by_key = |key: &str| {
            let end = key.strip_suffix(meant);
            end.is_some_and(|before| before.is_empty() || before.ends_with(':'))
        };
        !meant.is_empty() && (row.id.as_str().starts_with(meant) || key.is_some_and(by_key))
    };
    let found: Vec<_> = rows.iter().filter(is_meant).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(CommandFailure::new(
            format!("no sandbox {meant} in this home"),
            "see `hermetic sandbox list`",
        )),
        _ => {
            let ids: Vec<_> = found.iter().map(|row| row.id.as_str()).collect();
            Err(CommandFailure::new(
                format!("{meant} could be {}", ids.join(" or ")),
                "type more of the one you mean",
            ))
        }
    }
}

pub(in crate::commands) fn table(rows: &[ListedSandbox], now: Timestamp) -> String {
    if rows.is_empty() {
        return "No sandboxes.\n".to_owned();
    }
    let mut text = format!(
        "{BOLD}{:16}  {:8}  {:8}  {:>4}  {:>4}  {:>7}  CONVERSATION{BOLD:#}\n",
        "ID", "BACKEND", "STATE", "AGE", "IDLE", "SIZE"
    );
    for row in rows {
        let conversation = row
            .conversation
            .as_ref()
            .map_or("-", ConversationKey::as_str);
        let backend = row.kind;
        let _ = writeln!(
            text,
            "{:16}  {backend:8}  {:8}  {:>4}  {:>4}  {:>7}  {conversation}",
            row.id,
            row.state.name(),
            since(row.ledger.as_ref().map(|entry| entry.named_at), now),
            since(row.ledger.as_ref().map(|entry| entry.touched_at), now),
            row.disk_bytes.map_or_else(|| "-".to_owned(), size),
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

/// How long ago that was, in the largest unit that fits.
pub(in crate::commands) fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else {
        return "-".to_owned();
    };
    let seconds = now.since(then).as_secs();
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermetic_sandbox::{NetworkMode, SandboxLifeline, SystemView};
    use hermetic_store::LedgerState;
    use hermetic_types::{InstallationId, SandboxLimits};

    use super::*;

    fn entry(persistence: SandboxPersistence) -> LedgerEntry {
        let (id, conversation) = (SandboxId::random(), ConversationKey::new("chat"));
        let spec = SandboxSpec {
            installation: InstallationId::random(),
            conversation: conversation.clone(),
            id: id.clone(),
            system: SystemView::Host,
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence,
            lifeline: SandboxLifeline::Ledger,
            lifetime: Duration::from_secs(60),
        };
        LedgerEntry {
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

    fn row(state: RowState, ledger: Option<LedgerEntry>) -> ListedSandbox {
        ListedSandbox {
            id: SandboxId::random(),
            conversation: None,
            kind: BackendKind::Docker,
            backend: None,
            state,
            ledger,
            disk_bytes: None,
        }
    }

    #[test]
    fn prune_forgets_no_files_that_another_configuration_may_find() {
        let kept = || entry(SandboxPersistence::Kept);
        let set_aside = LedgerEntry {
            set_aside_at: Some(Timestamp::from_millis(2)),
            ..kept()
        };
        for entry in [kept(), set_aside] {
            let gone = row(RowState::Gone, Some(entry));
            assert!(
                !gone.is_rubbish(false),
                "kept files are forgotten: {gone:?}"
            );
            assert!(gone.is_rubbish(true), "asked for, they are");
        }
        assert!(row(RowState::Gone, Some(entry(SandboxPersistence::Ephemeral))).is_rubbish(false));
        assert!(row(RowState::Broken, Some(kept())).is_rubbish(false));
    }

    #[test]
    fn prune_takes_nothing_that_runs_or_does_not_answer() {
        for state in [RowState::Running, RowState::Busy, RowState::Unknown] {
            assert!(!row(state, None).is_rubbish(true), "{state:?}");
        }
        assert!(!row(RowState::Stopped, None).is_rubbish(false));
        assert!(row(RowState::Stopped, None).is_rubbish(true));
    }

    #[test]
    fn a_sandbox_is_meant_by_what_no_other_has() {
        let named = |id: &str, key: &str| ListedSandbox {
            id: id.parse().unwrap(),
            conversation: Some(ConversationKey::new(key)),
            ..row(RowState::Running, None)
        };
        let rows = [
            named("aaaa000000000001", "cli:work"),
            named("aabb000000000002", "agent:main:telegram:dm:42"),
            named("cccc000000000003", "agent:main:telegram:dm:142"),
        ];
        for (meant, index) in [
            ("aaaa000000000001", 0),
            ("aaa", 0),
            ("c", 2),
            ("work", 0),
            ("dm:42", 1),
            ("142", 2),
        ] {
            let found = find(&rows, meant).unwrap();
            assert_eq!(found.id, rows[index].id, "{meant}");
        }
        for meant in ["aa", "", "ork", "nobody"] {
            assert!(find(&rows, meant).is_err(), "{meant}");
        }
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let now = Timestamp::from_millis(1_000_000_000);
        let ago = |seconds: i64| {
            since(
                Some(Timestamp::from_millis(1_000_000_000 - seconds * 1000)),
                now,
            )
        };
        let told = [0, 59, 60, 3599, 3600, 86_400 * 3].map(ago);
        assert_eq!(told, ["0s", "59s", "1m", "59m", "1h", "3d"]);
        assert_eq!(ago(-5), "0s", "a clock that was put back");
        assert_eq!(since(None, now), "-");
    }
}
