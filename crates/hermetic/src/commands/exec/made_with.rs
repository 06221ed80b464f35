//! What a session's sandbox was made with.
//!
//! Folders and image are settled when a sandbox is made. Flags that ask for others later would be
//! without effect, so they are refused.

use hermetic_sandbox::{HostMount, MountMode, SandboxSpec, SystemView};

/// The first thing asked for that the sandbox was not made with, as it was typed.
pub(super) fn lacking(
    made: &SandboxSpec,
    image: Option<(&str, &SystemView)>,
    mounts: &[HostMount],
) -> Option<String> {
    if let Some((image, _)) = image.filter(|(_, system)| **system != made.system) {
        return Some(format!("--image {image}"));
    }
    let missing = mounts.iter().find(|mount| !made.mounts.contains(mount))?;
    let mode = match missing.mode {
        MountMode::ReadOnly => "",
        MountMode::ReadWrite => ":rw",
    };
    let (source, target) = (missing.source.display(), missing.target.display());
    Some(format!("--mount {source}:{target}{mode}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    use hermetic_sandbox::{NetworkMode, SandboxLifeline, SandboxPersistence};
    use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};

    fn mount(source: &str, mode: MountMode) -> HostMount {
        HostMount {
            source: source.into(),
            target: "/data".into(),
            mode,
        }
    }

    fn made(mounts: Vec<HostMount>) -> SandboxSpec {
        SandboxSpec {
            installation: InstallationId::random(),
            conversation: ConversationKey::new("cli:work"),
            id: SandboxId::random(),
            system: SystemView::Image("python:3".to_owned()),
            limits: SandboxLimits::default(),
            mounts,
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Kept,
            lifeline: SandboxLifeline::Ledger,
            lifetime: Duration::from_secs(60),
        }
    }

    #[test]
    fn what_it_was_made_with_may_be_said_again_or_left_out() {
        let made = made(vec![mount("/a", MountMode::ReadOnly)]);
        let image = made.system.clone();
        assert_eq!(lacking(&made, None, &[]), None);
        let again = [mount("/a", MountMode::ReadOnly)];
        assert_eq!(lacking(&made, Some(("python:3", &image)), &again), None);
    }

    #[test]
    fn what_it_was_not_made_with_is_named() {
        let made = made(vec![mount("/a", MountMode::ReadOnly)]);
        let writable = [mount("/a", MountMode::ReadWrite)];
        let said = lacking(&made, None, &writable);
        assert_eq!(said.as_deref(), Some("--mount /a:/data:rw"));
        let other = SystemView::Image("debian:12".to_owned());
        let said = lacking(&made, Some(("debian:12", &other)), &[]);
        assert_eq!(said.as_deref(), Some("--image debian:12"));
    }
}
