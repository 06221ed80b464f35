//! By what means the disk limit of one sandbox is kept.

use hermetic_sandbox::{BackendError, SandboxSpec};

use super::folder::SandboxFolder;
use super::native::{NativeHost, RequiredLayer};
use super::quota::{self, NoQuotas, ProjectQuotas};
use super::record::SandboxRecord;
use crate::plan::{CagePlan, WorkspaceStorage};

/// The means by which the disk limit of one sandbox is kept.
pub(super) enum DiskLimit {
    /// All its files are in one tmpfs of that size.
    SizedMemory,
    /// The kernel stops it at the limit.
    Quota { quotas: ProjectQuotas, project: u32 },
    /// A watch counts, and ends the sandbox that went over.
    Counted,
}

/// What an operator can do to have one that the kernel keeps.
pub(super) const REMEDY: &str = "as root, with the sandboxes on ext4 or xfs that has project quotas \
     switched on (docs/guides/limits.md), or container_persistent: false with a container_disk of at \
     most half container_memory";

impl DiskLimit {
    /// The strongest means there is. `before` is a kept sandbox that comes back.
    pub(super) fn choose(
        host: &NativeHost,
        spec: &SandboxSpec,
        planned: &CagePlan,
        before: Option<&SandboxRecord>,
    ) -> Result<Self, BackendError> {
        if matches!(planned.files, WorkspaceStorage::Memory) {
            return Ok(Self::SizedMemory);
        }
        let why = match host.project_quotas() {
            Ok(quotas) => match project(&quotas, host, spec, before) {
                Ok(project) => return Ok(Self::Quota { quotas, project }),
                Err(error) => NoQuotas::Denied(error),
            },
            Err(why) => why,
        };
        host.accept_counting(&why.to_string())?;
        Ok(Self::Counted)
    }

    pub(super) fn project(&self) -> Option<u32> {
        match self {
            Self::Quota { project, .. } => Some(*project),
            Self::SizedMemory | Self::Counted => None,
        }
    }

    /// For new folders, before anything can be written to them.
    pub(super) fn begin(
        &self,
        folder: &SandboxFolder,
        spec: &SandboxSpec,
    ) -> Result<(), BackendError> {
        let Self::Quota { quotas, project } = self else {
            return Ok(());
        };
        let trees = folder.trees();
        let failed = |source| BackendError::failed("set the disk quota", source);
        quotas.give(&trees, *project).map_err(failed)?;
        // Whoever chose the same number at the same moment would share our limit, and his end would
        // take it off.
        let mine = trees.len() as u64;
        if quotas.used(*project).map_err(failed)?.inodes != mine {
            return Err(failed(std::io::ErrorKind::AddrInUse.into()));
        }
        // After that look: set first, it would be set on the other's files.
        quotas.limit(*project, &spec.limits).map_err(failed)
    }

    /// For folders that were there before, by other means or on another file system.
    pub(super) fn renew(
        self,
        host: &NativeHost,
        folder: &SandboxFolder,
        spec: &SandboxSpec,
    ) -> Result<Self, BackendError> {
        let Self::Quota { quotas, project } = &self else {
            return Ok(self);
        };
        let trees = folder.trees();
        let given = if quota::belong_to(&trees, *project) {
            Ok(())
        } else {
            quotas.give(&trees, *project)
        };
        match given.and_then(|()| quotas.limit(*project, &spec.limits)) {
            Ok(()) => Ok(self),
            Err(error) => {
                tracing::warn!(sandbox = %folder.id, %error, "its files have no quota, and are counted");
                host.accept_counting(&format!("its files could not be given one ({error})"))?;
                Ok(Self::Counted)
            }
        }
    }
}

/// The one its files are in, if they are in one; else one that nobody uses.
fn project(
    quotas: &ProjectQuotas,
    host: &NativeHost,
    spec: &SandboxSpec,
    before: Option<&SandboxRecord>,
) -> std::io::Result<u32> {
    let Some(before) = before else {
        return quotas.choose(&spec.id);
    };
    // Quotas may have been switched off and on since, and the record may have been written meanwhile.
    let usual = ProjectQuotas::usual(&spec.id);
    let trees = host.folder(&spec.id).trees();
    [before.made.project, Some(usual)]
        .into_iter()
        .flatten()
        .find(|&project| quota::belong_to(&trees, project))
        .map_or_else(|| quotas.choose(&spec.id), Ok)
}

impl NativeHost {
    pub(super) fn project_quotas(&self) -> Result<ProjectQuotas, NoQuotas> {
        if self.outer_container.is_some() {
            // Its files are in an overlay, whose two sides would have to be one project.
            return Err(NoQuotas::SwitchedOff);
        }
        ProjectQuotas::of(&self.sandboxes())
    }

    /// Counting is weaker, and an operator may have ruled it out.
    fn accept_counting(&self, why: &str) -> Result<(), BackendError> {
        if !self.demands(RequiredLayer::DiskLimit) {
            return Ok(());
        }
        Err(BackendError::Unavailable {
            what: format!(
                "the disk limit would be counted, not kept by the kernel, which the configuration \
                 requires: {why}"
            ),
            remedy: REMEDY.to_owned(),
        })
    }
}
