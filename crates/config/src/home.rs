//! Where the files live.

use std::path::{Path, PathBuf};

/// One `$HERMES_HOME`: the user's files at its top, ours in `hermetic/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeFolder {
    root: PathBuf,
}

impl HomeFolder {
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.yaml")
    }

    pub fn dotenv_file(&self) -> PathBuf {
        self.root.join(".env")
    }

    /// The oldest of the formats, read below everything else.
    pub fn legacy_file(&self) -> PathBuf {
        self.root.join("gateway.json")
    }

    /// What is ours: nothing of Hermetic's is written outside of it.
    pub fn state(&self) -> PathBuf {
        self.root.join("hermetic")
    }
}
