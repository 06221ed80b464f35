//! Which files a record consists of.

use std::path::{Path, PathBuf};

/// The record, its key, and the note of where it ends.
///
/// All three side by side are good against whoever may write the record alone. A key that another user
/// put there, and a note on another file system, are good against more: restoring the folder of the
/// record from an earlier day then shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPaths {
    record: PathBuf,
    key: PathBuf,
    head: PathBuf,
}

impl AuditPaths {
    /// The key and the note lie beside the record.
    pub fn beside(record: &Path) -> Self {
        Self {
            record: record.to_owned(),
            key: record.with_extension("key"),
            head: record.with_extension("head"),
        }
    }

    /// The key is read from there. It is made there only where it is missing and may be made.
    #[must_use]
    pub fn with_key(mut self, key: Option<PathBuf>) -> Self {
        self.key = key.unwrap_or(self.key);
        self
    }

    #[must_use]
    pub fn with_head(mut self, head: Option<PathBuf>) -> Self {
        self.head = head.unwrap_or(self.head);
        self
    }

    pub fn record(&self) -> &Path {
        &self.record
    }

    pub fn key(&self) -> &Path {
        &self.key
    }

    pub fn head(&self) -> &Path {
        &self.head
    }

    /// Whether whoever restores the folder of the record restores the note as well.
    pub fn head_is_beside(&self) -> bool {
        self.head.parent() == self.record.parent()
    }

    pub fn key_is_beside(&self) -> bool {
        self.key.parent() == self.record.parent()
    }
}
