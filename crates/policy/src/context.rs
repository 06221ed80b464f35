//! Where a command would run, and what there is to protect.

use std::collections::BTreeSet;

use hermetic_types::{BackendDescription, BackendKind, Boundary};

use crate::fingerprint::CommandFingerprint;

/// All that a judgement needs to know besides the command.
#[derive(Clone, Debug)]
pub struct JudgementContext {
    pub backend: BackendKind,
    pub(crate) boundary: Boundary,
    /// Where commands start and may do as they please short of wiping it.
    pub workspace: String,
    /// The home folder of whoever the commands run as.
    pub home: String,
    /// This program's own folder (`$HERMES_HOME`): configuration, store, keys.
    pub own_home: String,
    /// More files that belong to this program, as absolute paths.
    pub own_files: Vec<String>,
    /// What a person allowed for this session.
    pub approved: BTreeSet<CommandFingerprint>,
}

impl JudgementContext {
    pub fn new(
        backend: BackendDescription,
        workspace: impl Into<String>,
        home: impl Into<String>,
    ) -> Self {
        let home = home.into();
        Self {
            backend: backend.kind,
            boundary: backend.boundary,
            workspace: workspace.into(),
            own_home: format!("{home}/.hermes"),
            home,
            own_files: Vec::new(),
            approved: BTreeSet::new(),
        }
    }

    pub fn boundary(&self) -> Boundary {
        self.boundary
    }
}
