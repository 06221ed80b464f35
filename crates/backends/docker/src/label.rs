//! What a container says of itself, in labels that only its maker can write.

use std::collections::HashMap;

use hermetic_sandbox::{MakerState, SandboxLifeline, SandboxPersistence, SandboxSpec};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};

use crate::watch::LayerBounds;

/// What is ours starts so; nobody else may set it.
pub(crate) const PREFIX: &str = "hermetic.";

const INSTALLATION: &str = "hermetic.installation";
const SANDBOX: &str = "hermetic.sandbox";
const CONVERSATION: &str = "hermetic.conversation";
const PERSISTENCE: &str = "hermetic.persistence";
const LIFELINE: &str = "hermetic.lifeline";
const DISK: &str = "hermetic.disk";
const INODES: &str = "hermetic.inodes";
/// The process that was making it, so that others can tell a create under way from a dead one.
const MAKER: &str = "hermetic.maker";

/// The image that ours is made of, as it was asked for and by its id.
const LAYER: &str = "hermetic.layer";
const BASE: &str = "hermetic.base";

/// The container's name, from which it is found again.
pub(crate) fn name(id: &SandboxId) -> String {
    format!("hermetic-{id}")
}

pub(crate) fn of(spec: &SandboxSpec) -> HashMap<String, String> {
    let mut labels = of_seed(&spec.installation, &spec.id);
    labels.extend([
        (CONVERSATION.to_owned(), spec.conversation.to_string()),
        (DISK.to_owned(), spec.limits.disk_bytes.to_string()),
        (INODES.to_owned(), spec.limits.inodes.to_string()),
    ]);
    let said = [
        (PERSISTENCE, spec.persistence.label()),
        (LIFELINE, spec.lifeline.label()),
    ];
    let said = said
        .into_iter()
        .filter_map(|(label, said)| Some((label.to_owned(), said?.to_owned())));
    labels.extend(said);
    labels
}

/// Of a container that will be an image, and no sandbox.
pub(crate) fn of_seed(installation: &InstallationId, id: &SandboxId) -> HashMap<String, String> {
    let mut labels = HashMap::from([
        (INSTALLATION.to_owned(), installation.to_string()),
        (SANDBOX.to_owned(), id.to_string()),
    ]);
    labels.extend(MakerState::label().map(|maker| (MAKER.to_owned(), maker)));
    labels
}

/// Of that image. What it would inherit of its seed is emptied: a container that a person makes of
/// it is not ours.
pub(crate) fn of_layer(asked: &str, base: &str) -> HashMap<String, String> {
    [
        (LAYER, asked),
        (BASE, base),
        (INSTALLATION, ""),
        (SANDBOX, ""),
        (MAKER, ""),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Whether it is of this image as it is now, or of another image altogether.
pub(crate) fn is_layer_of(labels: &HashMap<String, String>, asked: &str, base: &str) -> bool {
    labels.get(LAYER).is_some_and(|found| found != asked)
        || labels.get(BASE).is_some_and(|found| found == base)
}

/// A filter that leaves only images of ours.
pub(crate) fn layers() -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![LAYER.to_owned()])])
}

/// A filter that leaves only what is this installation's.
pub(crate) fn filter(installation: &InstallationId) -> HashMap<String, Vec<String>> {
    HashMap::from([(
        "label".to_owned(),
        vec![format!("{INSTALLATION}={installation}")],
    )])
}

/// The labels of a container that is ours.
#[derive(Clone, Debug)]
pub(crate) struct ContainerLabels {
    pub(crate) id: SandboxId,
    pub(crate) conversation: Option<ConversationKey>,
    pub(crate) persistence: SandboxPersistence,
    pub(crate) lifeline: SandboxLifeline,
    pub(crate) disk_bytes: Option<u64>,
    pub(crate) inodes: Option<u64>,
    maker: MakerState,
}

impl ContainerLabels {
    /// Nothing for a container of another installation, or of nobody we know.
    pub(crate) fn read(
        labels: &HashMap<String, String>,
        installation: &InstallationId,
    ) -> Option<Self> {
        // First of all: a container of somebody else's is not looked at any further.
        if labels.get(INSTALLATION)? != installation.as_str() {
            return None;
        }
        let said = |label: &str| labels.get(label).map(String::as_str);
        Some(Self {
            id: labels.get(SANDBOX)?.parse().ok()?,
            conversation: labels.get(CONVERSATION).map(ConversationKey::new),
            persistence: SandboxPersistence::of_label(said(PERSISTENCE)),
            lifeline: SandboxLifeline::of_label(said(LIFELINE)),
            disk_bytes: labels.get(DISK).and_then(|text| text.parse().ok()),
            inodes: labels.get(INODES).and_then(|text| text.parse().ok()),
            maker: MakerState::of_label(said(MAKER)),
        })
    }

    /// Those of a container that an earlier version made may be unknown.
    pub(crate) fn bounds(&self) -> LayerBounds {
        LayerBounds {
            bytes: self.disk_bytes,
            files: self.inodes,
        }
    }

    pub(crate) fn is_being_made(&self) -> bool {
        self.maker == MakerState::Alive
    }
}
