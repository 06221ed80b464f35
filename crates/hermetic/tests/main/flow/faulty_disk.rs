//! The store's own tests have a library that stands between the store and its disk; here a gateway has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::lab::Lab;

const SOURCE: &str = include_str!("../../../../store/tests/main/faults.c");
const ENOSPC: i32 = 28;

pub(crate) struct FaultyDisk {
    folder: TempDir,
    library: PathBuf,
}

impl FaultyDisk {
    pub(crate) fn build() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let library = build_library(folder.path(), "faults", SOURCE)?;
        Ok(Self { folder, library })
    }

    /// Starts the gateway on it, and it is well.
    pub(crate) fn start(&self, lab: &mut Lab) {
        self.is_well();
        self.forget_what_was_synced(lab);
        let variables = self.variables();
        lab.restart_with(
            &variables
                .each_ref()
                .map(|(name, value)| (*name, value.as_str())),
        );
    }

    /// Starts the gateway while nothing can be written, and waits for this word.
    pub(crate) fn start_full(&self, lab: &mut Lab, word: &str) {
        self.is_full();
        self.forget_what_was_synced(lab);
        let variables = self.variables();
        let variables = variables
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        lab.restart_until(word, &variables);
    }

    /// What puts it between a program and its disk.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let text = |path: &Path| path.display().to_string();
        [
            ("LD_PRELOAD", text(&self.library)),
            ("STORE_FAULTS", text(self.folder.path())),
        ]
    }

    fn forget_what_was_synced(&self, lab: &Lab) {
        let synced = self.folder.path().join("synced");
        let _ = fs::remove_dir_all(&synced);
        fs::create_dir(&synced).unwrap();
        // Whatever was there before this start is on the disk.
        for name in ["state.db", "state.db-wal"] {
            let _ = fs::copy(state(lab).join(name), synced.join(name));
        }
    }

    pub(crate) fn kills_before_commit(&self, commit: i64) {
        self.order("kill_before_commit", &commit.to_string());
    }

    /// The one with this number finds no room; those after it do.
    pub(crate) fn fails_commit(&self, commit: i64) {
        self.order("fail_commits", &format!("{ENOSPC} {commit} 1"));
    }

    pub(crate) fn is_full(&self) {
        self.is_full_after(0);
    }

    /// There is room for so many more, and for no other.
    pub(crate) fn is_full_after(&self, commits: i64) {
        self.order("fail_commits", &format!("{ENOSPC} {} 1000000", commits + 1));
    }

    pub(crate) fn is_well(&self) {
        for order in ["kill_before_commit", "fail_commits"] {
            let _ = fs::remove_file(self.folder.path().join(order));
        }
    }

    /// Puts the files back as they were when they were last synced.
    pub(crate) fn lose_what_was_not_synced(&self, lab: &Lab) {
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(state(lab).join(name));
            let _ = fs::copy(
                self.folder.path().join("synced").join(name),
                state(lab).join(name),
            );
        }
    }

    fn order(&self, name: &str, text: &str) {
        let aside = self.folder.path().join("aside");
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.folder.path().join(name)).unwrap();
    }
}

fn state(lab: &Lab) -> PathBuf {
    lab.path("hermetic")
}

/// Builds a library that is loaded before the C library; why not, where that cannot be done.
pub(super) fn build_library(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let source = folder.join(name).with_extension("c");
    let library = folder.join(name).with_extension("so");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status()
        .map_err(|error| format!("cc does not start: {error}"))?;
    match built.success() {
        true => Ok(library),
        false => Err("cc cannot build a library".to_owned()),
    }
}
