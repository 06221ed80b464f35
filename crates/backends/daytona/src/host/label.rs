//! What a sandbox says of itself, in labels that only a holder of the key can write.

use std::collections::HashMap;

use hermetic_sandbox::{MakerState, SandboxLifeline, SandboxPersistence, SandboxSpec};
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
    let said = [
        (PERSISTENCE, spec.persistence.label()),
        (LIFELINE, spec.lifeline.label()),
    ];
    let said = said
        .into_iter()
        .filter_map(|(label, said)| Some((label.to_owned(), said?.to_owned())));
    labels.extend(said);
    labels.extend(MakerState::label().map(|maker| (MAKER.to_owned(), maker)));
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
    maker: MakerState,
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
        let said = |label: &str| labels.get(label).map(String::as_str);
        Some(Self {
            id: labels.get(SANDBOX)?.parse().ok()?,
            conversation: labels.get(CONVERSATION).map(ConversationKey::new),
            persistence: SandboxPersistence::of_label(said(PERSISTENCE)),
            lifeline: SandboxLifeline::of_label(said(LIFELINE)),
            maker: MakerState::of_label(said(MAKER)),
        })
    }

    pub(crate) fn is_being_made(&self) -> bool {
        self.maker == MakerState::Alive
    }
}
