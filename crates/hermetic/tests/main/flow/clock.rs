//! A clock that the test moves, for a gateway that lives through hours in a moment.
//!
//! The gateway's own clocks move. Those inside its sandboxes do not: the program there is static, and a
//! static program loads no library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use super::faulty_disk::build_library;

const SOURCE: &str = include_str!("clock.c");

pub(crate) struct MovableClock {
    folder: tempfile::TempDir,
    library: PathBuf,
    file: File,
    /// What is added to the clock on the wall, in nanoseconds.
    wall: i64,
    /// What is added to the clocks that only run forward.
    steady: i64,
}

impl MovableClock {
    pub(crate) fn build() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let library = build_library(folder.path(), "clock", SOURCE)?;
        let path = folder.path().join("added");
        fs::write(&path, [0; 16]).map_err(|error| error.to_string())?;
        let file = File::options().write(true).open(path);
        Ok(Self {
            folder,
            library,
            file: file.map_err(|error| error.to_string())?,
            wall: 0,
            steady: 0,
        })
    }

    /// The library to be loaded, and the variable that names its file.
    pub(crate) fn variables(&self) -> (String, String) {
        let file = self.folder.path().join("added");
        (
            self.library.display().to_string(),
            file.display().to_string(),
        )
    }

    /// Time passes, for everybody who looks at a clock.
    pub(crate) fn pass(&mut self, time: Duration) {
        let time = i64::try_from(time.as_nanos()).unwrap();
        self.wall += time;
        self.steady += time;
        self.write();
    }

    /// Somebody sets the clock on the wall, forward or back.
    pub(crate) fn set_wall(&mut self, seconds: i64) {
        self.wall += seconds * 1_000_000_000;
        self.write();
    }

    /// How much time has passed so far that nobody waited for.
    pub(crate) fn passed(&self) -> Duration {
        Duration::from_nanos(self.steady.unsigned_abs())
    }

    fn write(&self) {
        self.file.write_all_at(&self.wall.to_ne_bytes(), 0).unwrap();
        self.file
            .write_all_at(&self.steady.to_ne_bytes(), 8)
            .unwrap();
    }
}
