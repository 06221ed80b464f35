//! What a native backend needs whatever the configuration says, made while that is read.
//!
//! For `hermetic exec`, where reading the configuration takes about as long as starting the first process of a
//! sandbox. If no sandbox is made, nothing of it lasts.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::InsideProgram;
use hermetic_types::InstallationId;

use super::groups::OwnGroups;
use super::native::{SANDBOXES, hold_uncopied};
use super::waiting_cage::{EarlyCage, EarlyStart};

/// A head start that another thread makes. Dropped, it waits for that thread and gives everything back.
#[derive(Debug)]
pub struct PendingHeadStart(Option<JoinHandle<Option<HeadStart>>>);

impl PendingHeadStart {
    /// None at all, for one who will not need it.
    pub fn none() -> Self {
        Self(None)
    }

    /// Begins, where this folder has held native sandboxes before: whoever has another backend gets no file and
    /// no process from a guess.
    pub fn begin(state: &Path, installation: &InstallationId, program: &'static [u8]) -> Self {
        if !state.join(SANDBOXES).is_dir() {
            return Self::none();
        }
        let (state, installation) = (state.to_owned(), installation.clone());
        let make = move || {
            let state = fs::canonicalize(state).ok()?;
            // Why it cannot be had is found again, and said, by whoever opens the backend.
            HeadStart::make(&state, &installation, program, EarlyStart::Once).ok()
        };
        Self(thread::Builder::new().spawn(make).ok())
    }

    /// What was made, if it is for this folder.
    pub(super) fn take(mut self, state: &Path, installation: &InstallationId) -> Option<HeadStart> {
        let made = self.0.take()?.join().ok()??;
        (made.state == state && &made.installation == installation).then_some(made)
    }
}

impl Drop for PendingHeadStart {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Waited for: this process may be about to end, and what the thread has made would be
            // given back by nobody.
            let _ = thread.join();
        }
    }
}

/// The groups, the program and, where one is wanted at once, the first process of a sandbox.
#[derive(Debug)]
pub(super) struct HeadStart {
    program: InsideProgram,
    early: EarlyCage,
    groups: GroupsOnLoan,
    state: PathBuf,
    installation: InstallationId,
}

impl HeadStart {
    /// `state` is where the folder really is.
    pub(super) fn make(
        state: &Path,
        installation: &InstallationId,
        program: &'static [u8],
        early: EarlyStart,
    ) -> Result<Self, BackendError> {
        // Before any process is started: one beside us in our group would be in the way of handing
        // controllers down.
        let groups = OwnGroups::detect(installation);
        // One that was started before systemd moved us would be left behind in a group that it may
        // not leave.
        let at_once = early == EarlyStart::Once && groups.are_settled();
        let groups = GroupsOnLoan(Some(groups));
        let program = hold_uncopied(state, program)?;
        let early = EarlyCage::new(early);
        if at_once {
            early.start(&program);
        }
        Ok(Self {
            program,
            early,
            groups,
            state: state.to_owned(),
            installation: installation.clone(),
        })
    }

    /// From here on the groups are the taker's to leave.
    pub(super) fn into_parts(mut self) -> (InsideProgram, EarlyCage, OwnGroups) {
        let groups = self.groups.0.take().unwrap_or_else(OwnGroups::none);
        (self.program, self.early, groups)
    }
}

/// Groups that go again unless somebody takes them.
#[derive(Debug)]
struct GroupsOnLoan(Option<OwnGroups>);

impl Drop for GroupsOnLoan {
    fn drop(&mut self) {
        if let Some(groups) = &self.0 {
            groups.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(state: &Path, installation: &InstallationId) -> PendingHeadStart {
        PendingHeadStart::begin(state, installation, hermetic_embedded::WARDEN)
    }

    #[test]
    fn a_folder_that_held_no_native_sandbox_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        assert!(begin(state.path(), &InstallationId::random()).0.is_none());
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_begun_is_for_one_folder_and_one_installation() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join(SANDBOXES)).unwrap();
        let real = fs::canonicalize(state.path()).unwrap();
        let (ours, other) = (InstallationId::random(), InstallationId::random());
        assert!(begin(state.path(), &ours).take(&real, &other).is_none());
        assert!(
            begin(state.path(), &ours)
                .take(Path::new("/"), &ours)
                .is_none()
        );
        assert!(begin(state.path(), &ours).take(&real, &ours).is_some());
    }
}
