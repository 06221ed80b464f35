//! A folder that a sandbox and the test share.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::OpenOptions;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// A pipe in a folder that sandboxes see as `/shared`: who opens it inside is heard outside.
pub(crate) struct Shared {
    folder: tempfile::TempDir,
    open: Mutex<Vec<fs::File>>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, go) = (folder.path().join("pipe"), folder.path().join("go"));
        let made = Command::new("mkfifo").args([&pipe, &go]).status().unwrap();
        assert!(made.success());
        let log = folder.path().join("log");
        fs::write(&log, "").unwrap();
        // Whoever the sandbox runs as reads and writes here: each runs as somebody else.
        let all = [
            (folder.path(), 0o777),
            (&pipe, 0o666),
            (&go, 0o666),
            (&log, 0o666),
        ];
        for (path, mode) in all {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        Self {
            folder,
            open: Mutex::default(),
        }
    }

    pub(crate) fn config(&self) -> String {
        format!(
            "terminal: {{native_mounts: ['{}:/shared:rw']}}\n",
            self.folder.path().display()
        )
    }

    /// Waits until something inside writes into the pipe.
    pub(crate) async fn heard(&self) -> String {
        // Opened for both ends, so that opening does not wait for a writer.
        let pipe = OpenOptions::new()
            .read_write(true)
            .open_receiver(self.path("pipe"))
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(pipe);
        timeout(PATIENCE, lines.read_line(&mut line))
            .await
            .expect("nothing was heard")
            .unwrap();
        line
    }

    /// Lets something inside go on that reads from `go`.
    pub(crate) fn say(&self, line: &str) {
        let mut go = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path("go"))
            .unwrap();
        go.write_all(line.as_bytes()).unwrap();
        // Kept open until the folder goes, or the line might go with the last end of the pipe.
        self.open.lock().unwrap().push(go);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
