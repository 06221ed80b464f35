//! What commands do in a stand-in's sandbox.

use std::path::PathBuf;
use std::process::{self, Stdio};
use std::sync::Arc;
use std::{fmt, io};

use hermetic_types::SandboxId;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::process::Command;

/// Chosen when the backend is made.
#[derive(Clone)]
pub enum Commands {
    /// The warden greets and then answers nothing at all.
    Silent,
    /// Each command prints what the test wrote down for its text.
    Scripted(Arc<dyn Fn(&str) -> Printed + Send + Sync>),
    /// Each is run by the host's bash, in a folder of its sandbox's own: harmless ones only.
    Bash(Arc<TempDir>),
}

/// What a scripted command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    Text {
        output: String,
        code: i32,
    },
    /// It goes on until it is ended.
    Endless,
}

impl Commands {
    pub fn scripted(script: impl Fn(&str) -> Printed + Send + Sync + 'static) -> Self {
        Self::Scripted(Arc::new(script))
    }

    /// # Panics
    ///
    /// If no temporary folder can be made.
    #[expect(clippy::expect_used, reason = "without it the test cannot go on")]
    pub fn bash() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::Bash(Arc::new(folder))
    }

    /// What a command does, once it is over; [`Printed::Endless`] is over when this is dropped.
    pub(super) async fn run(&self, sandbox: &SandboxId, text: &str) -> (String, i32) {
        let printed = match self {
            Self::Silent => Printed::Endless,
            Self::Scripted(script) => script(text),
            Self::Bash(folder) => in_bash(folder.path().join(sandbox.as_str()), text).await,
        };
        match printed {
            Printed::Text { output, code } => (output, code),
            Printed::Endless => std::future::pending().await,
        }
    }

    /// Where programs run that are spoken to; nowhere if commands are only played.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Bash(folder) => Some(folder.path().to_owned()),
            Self::Silent | Self::Scripted(_) => None,
        }
    }

    /// Its files go with a sandbox.
    pub(super) fn forget(&self, sandbox: &SandboxId) {
        if let Self::Bash(folder) = self {
            // There is none where no command ever ran.
            let _ = std::fs::remove_dir_all(folder.path().join(sandbox.as_str()));
        }
    }
}

impl Printed {
    pub fn text(output: impl Into<String>) -> Self {
        Self::Text {
            output: output.into(),
            code: 0,
        }
    }

    pub fn failure(output: impl Into<String>, code: i32) -> Self {
        Self::Text {
            output: output.into(),
            code,
        }
    }
}

async fn in_bash(folder: PathBuf, text: &str) -> Printed {
    match output_of(folder, text).await {
        Ok(done) => Printed::Text {
            output: String::from_utf8_lossy(&done.stdout).into_owned(),
            code: done.status.code().unwrap_or(-1),
        },
        Err(error) => Printed::failure(error.to_string(), 126),
    }
}

async fn output_of(folder: PathBuf, text: &str) -> io::Result<process::Output> {
    std::fs::create_dir_all(&folder)?;
    let child = Command::new("bash")
        // One pipe for both, in the order of writing.
        .args(["-c", &format!("exec 2>&1\n{text}")])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &folder)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let _group = EndsWhenDropped(child.id());
    child.wait_with_output().await
}

/// Ends a command with all that it started, also when nobody waits for it any more.
pub(super) struct EndsWhenDropped(pub(super) Option<u32>);

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            // It fails where nothing is left of the group.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "Silent",
            Self::Scripted(_) => "Scripted",
            Self::Bash(_) => "Bash",
        })
    }
}
