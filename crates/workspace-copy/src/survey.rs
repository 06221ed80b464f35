//! What a workspace consists of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::{CopyOutcome, CopyRequest};

/// When something was changed last. No program can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileStamp(pub(crate) i64, pub(crate) i64);

/// All that is in a workspace, each folder before what is in it.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSurvey {
    pub(crate) entries: Vec<FoundEntry>,
}

#[derive(Debug)]
pub(crate) struct FoundEntry {
    /// Below the workspace.
    pub(crate) path: PathBuf,
    pub(crate) facts: Metadata,
    /// An entry before this one that is the same file under another name.
    pub(crate) same_as: Option<usize>,
}

impl WorkspaceSurvey {
    /// Looks at everything but the folder of this name, and gives up as soon as there is more than may be copied.
    pub(crate) fn of(
        workspace: &Path,
        without: &str,
        request: &CopyRequest,
    ) -> Result<Self, CopyOutcome> {
        let broken = |_: std::io::Error| CopyOutcome::NotCopied;
        let device = fs::symlink_metadata(workspace).map_err(broken)?.dev();
        let mut survey = Self::default();
        let mut linked: HashMap<u64, usize> = HashMap::new();
        let mut kilobytes = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let listed = fs::read_dir(workspace.join(&folder)).map_err(broken)?;
            for found in listed {
                let found = found.map_err(broken)?;
                let path = folder.join(found.file_name());
                if path == Path::new(without) {
                    continue;
                }
                let facts = found.metadata().map_err(broken)?;
                let same_as = match linked.entry(facts.ino()) {
                    _ if facts.is_dir() || facts.nlink() < 2 => None,
                    Entry::Occupied(first) => Some(*first.get()),
                    Entry::Vacant(first) => {
                        first.insert(survey.entries.len());
                        None
                    }
                };
                // Room on the disk, not length: a file may be mostly holes.
                kilobytes += same_as.map_or(facts.blocks() / 2, |_| 0);
                let is_too_large = kilobytes > request.most_kilobytes
                    || survey.entries.len() >= request.most_entries;
                if is_too_large || facts.dev() != device {
                    return Err(CopyOutcome::TooLarge);
                }
                if facts.is_dir() {
                    folders.push(path.clone());
                }
                survey.entries.push(FoundEntry {
                    path,
                    facts,
                    same_as,
                });
            }
        }
        Ok(survey)
    }

    /// Whether all of it was changed before that moment. What changes later is then seen by its stamp.
    pub(crate) fn is_older_than(&self, moment: FileStamp) -> bool {
        let mut stamps = self.entries.iter().map(|entry| FileStamp::of(&entry.facts));
        stamps.all(|stamp| stamp < moment)
    }

    /// One number for the state of all of it, whatever the order in which it was found.
    pub(crate) fn digest(&self) -> u64 {
        let digests = self.entries.iter().map(|entry| {
            let mut hasher = DefaultHasher::new();
            let facts = &entry.facts;
            entry.path.hash(&mut hasher);
            (facts.ino(), facts.size(), facts.mode()).hash(&mut hasher);
            (facts.ctime(), facts.ctime_nsec()).hash(&mut hasher);
            hasher.finish()
        });
        digests.fold(0, u64::wrapping_add)
    }
}
