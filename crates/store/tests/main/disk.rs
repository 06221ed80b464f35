//! A disk that obeys orders: `faults.c` stands between the store and it.
//!
//! The library has to be there before the program's own, so a test starts itself once more with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const FOLDER: &str = "STORE_FAULTS";
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EIO: i32 = 5;

/// What the store's disk is told to do.
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("state.db")
    }

    /// From the first commit from now on.
    pub(crate) fn fails_commits(&self, error: i32, first: u32, count: u32) {
        self.order("fail_commits", &format!("{error} {first} {count}"));
    }

    pub(crate) fn fails_syncs(&self, error: i32, first: u32, count: u32) {
        self.order("fail_syncs", &format!("{error} {first} {count}"));
    }

    pub(crate) fn is_well(&self) {
        for order in ["fail_commits", "fail_syncs"] {
            let _ = fs::remove_file(self.0.join(order));
        }
    }

    /// How often the log was synced since this was asked last.
    pub(crate) fn syncs(&self) -> usize {
        let path = self.0.join("syncs");
        let syncs = fs::read(&path).unwrap_or_default().len();
        fs::write(path, "").unwrap();
        syncs
    }

    /// The store as a power cut at this moment would leave it at least; its path.
    pub(crate) fn after_a_power_cut(&self) -> (TempDir, PathBuf) {
        let copy = tempfile::tempdir().unwrap();
        for name in ["state.db", "state.db-wal"] {
            let synced = self.0.join("synced").join(name);
            if synced.exists() {
                fs::copy(synced, copy.path().join(name)).unwrap();
            }
        }
        let path = copy.path().join("state.db");
        (copy, path)
    }

    /// Replaced in one step, so that it is never read half.
    fn order(&self, name: &str, text: &str) {
        let aside = self.0.join("aside");
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.0.join(name)).unwrap();
    }
}

/// Runs the body of a test on such a disk.
pub(crate) fn on_a_disk<F: Future>(test: &str, body: impl FnOnce(Disk) -> F) {
    if let Some(folder) = env::var_os(FOLDER) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(body(Disk(folder.into())));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return eprintln!("SKIP: {test}: cc cannot build a library");
    };
    fs::create_dir(folder.path().join("synced")).unwrap();
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("LD_PRELOAD", library)
        .env(FOLDER, folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed on the disk of orders");
}

fn library(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("faults.c");
    let library = folder.join("faults.so");
    fs::write(&source, include_str!("faults.c")).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status();
    built
        .is_ok_and(|status| status.success())
        .then_some(library)
}
