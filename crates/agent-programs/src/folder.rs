//! Where installed agents lie: `agents/` in our part of the home.
//!
//! ```text
//! agents/lock               held by whoever changes something
//! agents/claude/tree/       what a sandbox sees, read-only
//! agents/claude/checksums   the checksum of every file of the tree
//! agents/claude/installed   what it is, with the checksum of that list
//! agents/.staging-…         what is being made, or was when somebody pulled the plug
//! agents/.previous-claude   the one before, for sandboxes that still see it; .previous-claude.2 and so on where
//!                           it was replaced again while a gateway ran
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::checksums::{self, ChecksumError, TreeDifference};

/// The folder of all installed agents.
#[derive(Clone, Debug)]
pub struct AgentFolder {
    root: PathBuf,
    /// Sandboxes may see what is in it, also what was replaced before.
    is_in_use: bool,
}

/// What was installed, as it is written beside the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledAgent {
    pub package: String,
    pub version: String,
    pub files: usize,
    pub bytes: u64,
    /// The checksum of the list of checksums.
    pub checksum: String,
    /// The Python that its packages were fetched for: `3.11`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
}

/// The reason why the folder cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    #[error("cannot {verb} {}", path.display())]
    File {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the record of what was installed in {} cannot be understood", path.display())]
    Record { path: PathBuf },
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
}

pub(crate) const TREE: &str = "tree";
pub(crate) const CHECKSUMS: &str = "checksums";
pub(crate) const INSTALLED: &str = "installed";
pub(crate) const STAGING: &str = ".staging-";
pub(crate) const PREVIOUS: &str = ".previous-";
/// A list of a hundred thousand files is below it.
const MOST_LIST_BYTES: u64 = 32 << 20;

impl AgentFolder {
    /// In our part of a home. Nothing is made before something is installed.
    pub fn in_state(state: &Path) -> Self {
        Self {
            root: state.join("agents"),
            is_in_use: false,
        }
    }

    /// The same, while a gateway runs: no tree that one of its sandboxes may still see is removed.
    pub fn in_use(mut self) -> Self {
        self.is_in_use = true;
        self
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What a sandbox is shown of this one.
    pub fn tree(&self, name: &str) -> PathBuf {
        self.root.join(name).join(TREE)
    }

    /// What is installed under this name.
    pub fn installed(&self, name: &str) -> Result<Option<InstalledAgent>, FolderError> {
        let path = self.root.join(name).join(INSTALLED);
        let Some(text) = read_bounded(&path)? else {
            return Ok(None);
        };
        let read = serde_json::from_str(&text);
        read.map(Some).map_err(|_| FolderError::Record { path })
    }

    /// How the tree differs from what was installed.
    pub fn verify(
        &self,
        name: &str,
        installed: &InstalledAgent,
    ) -> Result<TreeDifference, FolderError> {
        let path = self.root.join(name).join(CHECKSUMS);
        let list = read_bounded(&path)?.ok_or(ChecksumError::List)?;
        if checksums::sum_of_text(&list) != installed.checksum {
            return Err(ChecksumError::List.into());
        }
        let sums = checksums::read_list(&list)?;
        let found = checksums::sum_up(&self.tree(name))?;
        Ok(checksums::compare(&sums, &found))
    }

    /// The lock of whoever changes something. `waits` is called where another one holds it.
    pub(crate) fn lock(&self, waits: impl FnOnce()) -> Result<File, FolderError> {
        let failed = |verb: &'static str, path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::File { verb, path, source }
        };
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root);
        made.map_err(failed("create", &self.root))?;
        let path = self.root.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => waits(),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
        lock.lock().map_err(failed("lock", &path))?;
        Ok(lock)
    }

    /// Removes what somebody left who was interrupted. Only for whoever holds the lock.
    pub(crate) fn sweep(&self) -> Result<(), FolderError> {
        for name in self.names_beginning_with(STAGING)? {
            remove_all(&self.root.join(name))?;
        }
        Ok(())
    }

    /// A free place for the tree that is replaced now. Those before it go, unless somebody may see them.
    pub(crate) fn place_for_previous(&self, name: &str) -> Result<PathBuf, FolderError> {
        let first = format!("{PREVIOUS}{name}");
        if !self.is_in_use {
            self.remove_previous(name)?;
        }
        let mut places = (2u32..).map(|number| format!("{first}.{number}"));
        let mut place = self.root.join(&first);
        while place.exists() {
            place = self.root.join(places.next().unwrap_or_default());
        }
        Ok(place)
    }

    /// Whether there was any.
    pub(crate) fn remove_previous(&self, name: &str) -> Result<bool, FolderError> {
        let first = format!("{PREVIOUS}{name}");
        let more = format!("{first}.");
        let mut was_there = false;
        for found in self.names_beginning_with(PREVIOUS)? {
            if found == first || found.starts_with(&more) {
                remove_all(&self.root.join(found))?;
                was_there = true;
            }
        }
        Ok(was_there)
    }

    fn names_beginning_with(&self, start: &str) -> Result<Vec<String>, FolderError> {
        let failed = |source| FolderError::File {
            verb: "read",
            path: self.root.clone(),
            source,
        };
        let entries = fs::read_dir(&self.root).map_err(failed)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| name.starts_with(start)).collect())
    }
}

pub(crate) fn remove_all(path: &Path) -> Result<(), FolderError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FolderError::File {
            verb: "remove",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

fn read_bounded(path: &Path) -> Result<Option<String>, FolderError> {
    let failed = |source| FolderError::File {
        verb: "read",
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Ok(found) if found.len() > MOST_LIST_BYTES => Err(FolderError::Record {
            path: path.to_owned(),
        }),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
