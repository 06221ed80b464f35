//! What a sandbox's folder says of it: one file that is written before anything exists which would
//! have to be cleaned up, and gets a line for each life before that life is told to go on.
//!
//! One file, because some file systems take long over each new name where many were deleted. A line
//! that a crash tore is no line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hermetic_sandbox::SandboxSpec;
use hermetic_sandbox::host::ProcessHandle;
use serde::{Deserialize, Serialize};

const NAME: &str = "sandbox.json";

/// What is written down about one sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    pub(super) spec: SandboxSpec,
    pub(super) made: ExternalResources,
    /// It had a life before this was written.
    pub(super) lived: bool,
    #[serde(skip)]
    pub(super) life: Option<ProcessHandle>,
}

/// What was made for a sandbox outside its folder, and so must be unmade.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExternalResources {
    pub(super) groups: Vec<PathBuf>,
    /// Workspace and home are files on disk, to be watched and counted.
    pub(super) on_disk: bool,
    /// The project of the file system's whose quota is the disk limit.
    #[serde(default)]
    pub(super) project: Option<u32>,
}

impl SandboxRecord {
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(NAME)).ok()?;
        // Only lines with their end: the last one may have been torn by a crash.
        let mut lines = text.split_inclusive(|&byte| byte == b'\n');
        let mut whole = || lines.next().and_then(|line| line.strip_suffix(b"\n"));
        let mut record: Self = serde_json::from_slice(whole()?).ok()?;
        while let Some(line) = whole() {
            // The last line counts. One that cannot be read clears the life before it, whose
            // process has ended by then.
            record.life = serde_json::from_slice(line).ok();
            record.lived |= record.life.is_some();
        }
        Some(record)
    }

    /// In a folder that has none: if it is not whole, nothing was made yet.
    pub(super) fn write_first(&self, folder: &Path) -> io::Result<()> {
        let mut file = fs::File::create_new(folder.join(NAME))?;
        file.write_all(&line(self)?)
    }

    /// In the place of another: a reader after a crash sees the old or the new.
    pub(super) fn replace(&self, folder: &Path) -> io::Result<()> {
        let partial = folder.join("sandbox.json.partial");
        fs::write(&partial, line(self)?)?;
        fs::rename(partial, folder.join(NAME))
    }

    pub(super) fn add_life(folder: &Path, life: &ProcessHandle) -> io::Result<()> {
        // Added and not replaced, as this lies on the way of every start; a rename would take a
        // second name.
        let mut file = fs::File::options().append(true).open(folder.join(NAME))?;
        file.write_all(&line(life)?)
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    use hermetic_sandbox::{NetworkMode, SandboxLifeline, SandboxPersistence, SystemView};
    use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};

    fn record() -> SandboxRecord {
        SandboxRecord {
            spec: SandboxSpec {
                installation: InstallationId::random(),
                conversation: ConversationKey::new("test"),
                id: SandboxId::random(),
                system: SystemView::Host,
                limits: SandboxLimits::default(),
                mounts: Vec::new(),
                env: BTreeMap::from([("A".to_owned(), "one\ntwo".to_owned())]),
                network: NetworkMode::Closed,
                lifetime: Duration::from_secs(60),
                persistence: SandboxPersistence::Kept,
                lifeline: SandboxLifeline::Ledger,
            },
            made: ExternalResources {
                groups: Vec::new(),
                on_disk: true,
                project: None,
            },
            lived: false,
            life: None,
        }
    }

    #[test]
    fn the_last_life_counts_and_a_torn_line_does_not() {
        let folder = tempfile::tempdir().unwrap();
        record().write_first(folder.path()).unwrap();
        let read = SandboxRecord::read(folder.path()).unwrap();
        assert_eq!((read.lived, read.life), (false, None));

        let life = ProcessHandle::observe(std::process::id().cast_signed()).unwrap();
        SandboxRecord::add_life(folder.path(), &life).unwrap();
        let file = folder.path().join(NAME);
        let text = fs::read(&file).unwrap();
        fs::write(&file, [&text[..], b"{\"pid\": 1"].concat()).unwrap();
        let read = SandboxRecord::read(folder.path()).unwrap();
        assert_eq!((read.lived, read.life), (true, Some(life)));

        fs::write(&file, &text[..40]).unwrap();
        assert!(SandboxRecord::read(folder.path()).is_none());
    }
}
