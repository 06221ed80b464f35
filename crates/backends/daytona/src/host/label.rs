//! What a sandbox says of itself, in labels that only a holder of the key can write.

use std::collections::HashMap;

use hermetic_sandbox::host::ProcessHandle;
use hermetic_sandbox::{SandboxLifeline, SandboxPersistence, SandboxSpec};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};
use serde_json::json;

/// As Hermes has it, so that filters of its users go on to work.
const TASK: &str = "hermes_task_id";

const INSTALLATION: &str = "hermetic.installation";
const SANDBOX: &str = "hermetic.sandbox";
const CONVERSATION: &str = "hermetic.conversation";
const PERSISTENCE: &str = "hermetic.persistence";
const LIFELINE: &str = "hermetic.lifeline";
/// The process that was making it, so that others can tell a create under way from a dead one.
const MAKER: &str = "hermetic.maker";
/// Random: an answer that was lost is told by it from another sandbox of the name.
const BIRTH: &str = "hermetic.birth";

const KEPT: &str = "kept";
const CREATOR: &str = "creator";

/// The name, from which it is found again. One for each conversation's sandbox.
pub(crate) fn name(id: &SandboxId) -> String {
    format!("hermes-{id}")
}

pub(crate) fn of(spec: &SandboxSpec, birth: &str) -> HashMap<String, String> {
    let mut labels = HashMap::from([
        (TASK.to_owned(), spec.id.to_string()),
        (INSTALLATION.to_owned(), spec.installation.to_string()),
        (SANDBOX.to_owned(), spec.id.to_string()),
        (CONVERSATION.to_owned(), spec.conversation.to_string()),
        (BIRTH.to_owned(), birth.to_owned()),
    ]);
    if spec.persistence == SandboxPersistence::Kept {
        labels.insert(PERSISTENCE.to_owned(), KEPT.to_owned());
    }
    if spec.lifeline == SandboxLifeline::Creator {
        labels.insert(LIFELINE.to_owned(), CREATOR.to_owned());
    }
    let own = i32::try_from(std::process::id()).ok();
    if let Some(maker) = own.and_then(ProcessHandle::observe)
        && let Ok(text) = serde_json::to_string(&maker)
    {
        labels.insert(MAKER.to_owned(), text);
    }
    labels
}

/// A filter that leaves only what is this installation's.
pub(crate) fn filter(installation: &InstallationId) -> String {
    json!({ INSTALLATION: installation.as_str() }).to_string()
}

pub(crate) fn is_of_birth(labels: &HashMap<String, String>, birth: &str) -> bool {
    labels.get(BIRTH).is_some_and(|found| found == birth)
}

/// The labels of a sandbox that is ours.
#[derive(Clone, Debug)]
pub(crate) struct OwnedLabels {
    pub(crate) id: SandboxId,
    pub(crate) conversation: Option<ConversationKey>,
    pub(crate) persistence: SandboxPersistence,
    pub(crate) lifeline: SandboxLifeline,
    maker: Option<ProcessHandle>,
}

impl OwnedLabels {
    /// Nothing for a sandbox of another installation, or of nobody we know. The service's own
    /// filter is a convenience; this is the rule.
    pub(crate) fn read(
        labels: &HashMap<String, String>,
        installation: &InstallationId,
    ) -> Option<Self> {
        if labels.get(INSTALLATION)? != installation.as_str() {
            return None;
        }
        let is = |label: &str, value: &str| labels.get(label).is_some_and(|found| found == value);
        Some(Self {
            id: labels.get(SANDBOX)?.parse().ok()?,
            conversation: labels.get(CONVERSATION).map(ConversationKey::new),
            persistence: if is(PERSISTENCE, KEPT) {
                SandboxPersistence::Kept
            } else {
                SandboxPersistence::Ephemeral
            },
            lifeline: if is(LIFELINE, CREATOR) {
                SandboxLifeline::Creator
            } else {
                SandboxLifeline::Ledger
            },
            maker: labels
                .get(MAKER)
                .and_then(|text| serde_json::from_str(text).ok()),
        })
    }

    pub(crate) fn is_being_made(&self) -> bool {
        self.maker
            .as_ref()
            .is_some_and(|maker| maker.open().is_some())
    }
}
