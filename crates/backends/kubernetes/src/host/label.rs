//! What a sandbox says of itself, in labels and annotations that only who has our rights can write.

use hermetic_sandbox::{MakerState, SandboxLifeline, SandboxPersistence, SandboxSpec};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};
use serde_json::{Value, json};

pub(crate) const INSTALLATION: &str = "hermetic-installation";
pub(crate) const SANDBOX: &str = "hermetic-sandbox";
const CONVERSATION: &str = "hermetic-conversation";
const PERSISTENCE: &str = "hermetic-persistence";
const LIFELINE: &str = "hermetic-lifeline";
/// Which of possibly several starts of this sandbox it is.
const START: &str = "hermetic-start";
/// The process that was making it, so that others can tell a create under way from a dead one.
const MAKER: &str = "hermetic-maker";

/// Of the Job and of the volume's claim; the cluster has one of each at a time.
pub(crate) fn name(id: &SandboxId) -> String {
    format!("hermetic-{id}")
}

pub(crate) fn labels(spec: &SandboxSpec) -> Value {
    json!({
        "app.kubernetes.io/name": "hermetic-sandbox",
        "app.kubernetes.io/managed-by": "hermetic",
        INSTALLATION: spec.installation.as_str(),
        SANDBOX: spec.id.as_str(),
        // A mesh's sidecar would be a way out.
        "sidecar.istio.io/inject": "false",
    })
}

pub(crate) fn annotations(spec: &SandboxSpec, start: &str) -> Value {
    let mut annotations = json!({
        CONVERSATION: spec.conversation.as_str(),
        START: start,
        "linkerd.io/inject": "disabled",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    });
    if let Some(kept) = spec.persistence.label() {
        annotations[PERSISTENCE] = kept.into();
    }
    if let Some(lifeline) = spec.lifeline.label() {
        annotations[LIFELINE] = lifeline.into();
    }
    if let Some(maker) = MakerState::label() {
        annotations[MAKER] = maker.into();
    }
    annotations
}

/// All of this installation, or all that belongs to one of its sandboxes.
pub(crate) fn selector(installation: &InstallationId, id: Option<&SandboxId>) -> String {
    match id {
        Some(id) => format!("{INSTALLATION}={installation},{SANDBOX}={id}"),
        None => format!("{INSTALLATION}={installation}"),
    }
}

/// What an object of ours says of itself.
#[derive(Clone, Debug)]
pub(crate) struct OwnedObject {
    pub(crate) id: SandboxId,
    pub(crate) conversation: Option<ConversationKey>,
    pub(crate) persistence: SandboxPersistence,
    pub(crate) lifeline: SandboxLifeline,
    pub(crate) start: String,
    pub(crate) maker: MakerState,
}

impl OwnedObject {
    /// Nothing for what is of another installation, or of nobody we know, whatever was asked for.
    pub(crate) fn read(object: &Value, installation: &InstallationId) -> Option<Self> {
        let label = |name: &str| object["metadata"]["labels"][name].as_str();
        let note = |name: &str| object["metadata"]["annotations"][name].as_str();
        if label(INSTALLATION)? != installation.as_str() {
            return None;
        }
        Some(Self {
            id: label(SANDBOX)?.parse().ok()?,
            conversation: note(CONVERSATION).map(ConversationKey::new),
            persistence: SandboxPersistence::of_label(note(PERSISTENCE)),
            lifeline: SandboxLifeline::of_label(note(LIFELINE)),
            start: note(START).unwrap_or_default().to_owned(),
            maker: MakerState::of_label(note(MAKER)),
        })
    }
}

/// An object's own name, and the number that no later one of the same name has.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(crate) fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_not_ours() {
        let installation = InstallationId::random();
        let object = |labels: Value| json!({"metadata": {"labels": labels}});
        let read = |labels| OwnedObject::read(&object(labels), &installation);
        let own = installation.as_str();
        assert!(read(json!({INSTALLATION: own, SANDBOX: "abc"})).is_some());
        assert!(read(json!({INSTALLATION: own})).is_none());
        assert!(read(json!({INSTALLATION: "another", SANDBOX: "abc"})).is_none());
        assert!(read(json!({INSTALLATION: own, SANDBOX: "../abc"})).is_none());
        assert!(read(Value::Null).is_none());
    }
}
