//! Who a sandbox has to be outside to write to the folders it was given.
//!
//! A sandbox that root starts is an id that belongs to nobody, so a folder shown writable would be
//! writable in name only. One that ends with its creator becomes the folder's owner instead. Root
//! itself it never is: a file with a set-user-id bit in such a folder would be a way to own the host.

use std::fs;
use std::os::unix::fs::MetadataExt;

use hermetic_sandbox::{BackendError, HostMount, MountMode, SandboxLifeline, SandboxSpec};

use crate::plan::SandboxIdentity;

const OTHERS_WRITE: u32 = 0o002;

/// The identity that can write to every writable mount, or why there is none.
pub(super) fn identity(
    spec: &SandboxSpec,
    usual: SandboxIdentity,
) -> Result<SandboxIdentity, BackendError> {
    let SandboxIdentity::Assumed(mut id) = usual else {
        return Ok(usual);
    };
    let writable = spec.mounts.iter();
    for mount in writable.filter(|mount| mount.mode == MountMode::ReadWrite) {
        // A source that is not there is refused where mounts are checked.
        let Ok(found) = fs::metadata(&mount.source) else {
            continue;
        };
        let owner = found.uid();
        if owner == id || found.mode() & OTHERS_WRITE != 0 {
            continue;
        }
        // A kept one has to be the same user each time it is started.
        if owner == 0
            || spec.lifeline != SandboxLifeline::Creator
            || SandboxIdentity::Assumed(id) != usual
        {
            return Err(unwritable(mount, owner));
        }
        id = owner;
    }
    Ok(SandboxIdentity::Assumed(id))
}

fn unwritable(mount: &HostMount, owner: u32) -> BackendError {
    let source = mount.source.display();
    BackendError::Refused {
        what: format!("showing {source} writable"),
        why: format!(
            "it belongs to uid {owner}, which a sandbox started by root is not; give it to a user \
             of its own (chown) and start hermetic as that user, let everybody write there \
             (chmod o+w), or show it read-only"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::path::Path;
    use std::time::Duration;

    use hermetic_sandbox::{NetworkMode, SandboxPersistence, SystemView};
    use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};

    const USUAL: SandboxIdentity = SandboxIdentity::Assumed(0x7000_0001);

    fn spec(lifeline: SandboxLifeline, folders: &[&Path], mode: MountMode) -> SandboxSpec {
        let mount = |folder: &&Path| HostMount {
            source: folder.to_path_buf(),
            target: "/data".into(),
            mode,
        };
        SandboxSpec {
            installation: InstallationId::random(),
            conversation: ConversationKey::new("cli"),
            id: SandboxId::random(),
            system: SystemView::Host,
            limits: SandboxLimits::default(),
            mounts: folders.iter().map(mount).collect(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            lifeline,
            lifetime: Duration::from_secs(60),
        }
    }

    fn owned_by(uid: u32) -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        match chown(folder.path(), Some(uid), Some(uid)) {
            Ok(()) => Some(folder),
            Err(error) => {
                eprintln!("SKIP: who may write to a mount: {error}");
                None
            }
        }
    }

    #[test]
    fn a_passing_sandbox_of_root_becomes_the_folders_owner() {
        let Some(folder) = owned_by(1234) else { return };
        let spec = spec(
            SandboxLifeline::Creator,
            &[folder.path()],
            MountMode::ReadWrite,
        );
        assert_eq!(
            identity(&spec, USUAL).unwrap(),
            SandboxIdentity::Assumed(1234)
        );
    }

    #[test]
    fn it_is_never_root_and_says_what_to_do() {
        let Some(folder) = owned_by(0) else { return };
        let spec = spec(
            SandboxLifeline::Creator,
            &[folder.path()],
            MountMode::ReadWrite,
        );
        let said = identity(&spec, USUAL).unwrap_err().to_string();
        assert!(
            said.contains("belongs to uid 0") && said.contains("chown"),
            "{said}"
        );
    }

    #[test]
    fn of_two_owners_it_can_be_only_one() {
        let (Some(one), Some(other)) = (owned_by(1234), owned_by(1235)) else {
            return;
        };
        let both = [one.path(), other.path()];
        let spec = spec(SandboxLifeline::Creator, &both, MountMode::ReadWrite);
        assert!(identity(&spec, USUAL).is_err());
    }

    #[test]
    fn what_everybody_may_write_or_nobody_writes_changes_nothing() {
        let Some(folder) = owned_by(0) else { return };
        let read_only = spec(
            SandboxLifeline::Ledger,
            &[folder.path()],
            MountMode::ReadOnly,
        );
        assert_eq!(identity(&read_only, USUAL).unwrap(), USUAL);
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).unwrap();
        let open = spec(
            SandboxLifeline::Ledger,
            &[folder.path()],
            MountMode::ReadWrite,
        );
        assert_eq!(identity(&open, USUAL).unwrap(), USUAL);
    }

    #[test]
    fn a_kept_one_stays_who_it_is() {
        let Some(folder) = owned_by(1234) else { return };
        let spec = spec(
            SandboxLifeline::Ledger,
            &[folder.path()],
            MountMode::ReadWrite,
        );
        assert!(identity(&spec, USUAL).is_err());
    }
}
