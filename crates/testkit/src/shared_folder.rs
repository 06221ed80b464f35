//! A folder that a sandbox and the test share.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::OpenOptions;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// A pipe in a folder that sandboxes see as `/shared`: who opens it inside is heard outside.
#[derive(Debug)]
pub struct SharedFolder {
    folder: tempfile::TempDir,
    open: Mutex<Vec<fs::File>>,
}

impl SharedFolder {
    #[expect(
        clippy::new_without_default,
        reason = "it makes files, which nobody expects of a default"
    )]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, go) = (folder.path().join("pipe"), folder.path().join("go"));
        let made = Command::new("mkfifo").args([&pipe, &go]).status();
        assert!(made.expect("mkfifo is there").success());
        let log = folder.path().join("log");
        fs::write(&log, "").expect("a file");
        // Whoever the sandbox runs as reads and writes here: each runs as somebody else.
        let all = [
            (folder.path(), 0o777),
            (&pipe, 0o666),
            (&go, 0o666),
            (&log, 0o666),
        ];
        for (path, mode) in all {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
        }
        Self {
            folder,
            open: Mutex::default(),
        }
    }

    pub fn config(&self) -> String {
        format!(
            "terminal: {{native_mounts: ['{}:/shared:rw']}}\n",
            self.folder.path().display()
        )
    }

    /// Waits until something inside writes into the pipe.
    pub async fn heard(&self) -> String {
        // Opened for both ends, so that opening does not wait for a writer.
        let pipe = OpenOptions::new()
            .read_write(true)
            .open_receiver(self.path("pipe"))
            .expect("the pipe");
        let mut line = String::new();
        let mut lines = BufReader::new(pipe);
        timeout(PATIENCE, lines.read_line(&mut line))
            .await
            .expect("nothing was heard")
            .expect("a line");
        line
    }

    /// Lets something inside go on that reads from `go`.
    pub fn say(&self, line: &str) {
        let mut go = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path("go"))
            .expect("the pipe");
        go.write_all(line.as_bytes()).expect("room in the pipe");
        // Kept open until the folder goes, or the line might go with the last end of the pipe.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(go);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
