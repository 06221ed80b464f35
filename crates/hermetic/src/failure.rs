//! Why a command did not do what was asked: one line of what happened, one of what to do.

use std::error::Error;
use std::fmt;
use std::path::Path;

use hermetic_config::{BackendDoubt, NoHome, Problems};
use hermetic_sandbox::BackendError;
use hermetic_store::StoreError;
use hermetic_warden::client::CallError;
use thiserror::Error;

use crate::exit::Exit;

#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Config(Problems),
    #[error("{0}")]
    Backend(BackendDoubt),
    #[error("{what}")]
    Other { what: String, remedy: String },
    /// Of `hermetic exec`, whose codes leave room for the command's own.
    #[error("{failure}")]
    Exec { failure: Box<Failure>, code: u8 },
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Other {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Something about a file that the system refused.
    pub(crate) fn file(verb: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(
            format!("cannot {verb} {}: {error}", path.display()),
            "check the path, its permissions and the space left",
        )
    }

    /// An error with its causes, in one line.
    pub(crate) fn caused(error: &dyn Error, remedy: impl Into<String>) -> Self {
        let mut what = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Transparent errors repeat the text of their cause.
            if !what.ends_with(&text) {
                what = format!("{what}: {text}");
            }
            cause = error.source();
        }
        Self::new(what, remedy)
    }

    /// The same, and what it happened to.
    pub(crate) fn during(self, doing: impl fmt::Display) -> Self {
        match self {
            Self::Other { what, remedy } => Self::new(format!("{doing}: {what}"), remedy),
            other => other,
        }
    }

    pub(crate) fn with(self, code: u8) -> Self {
        Self::Exec {
            failure: Box::new(self),
            code,
        }
    }

    /// A failure of our own under `exec`.
    pub(crate) fn of_exec(self) -> Self {
        match self {
            Self::Exec { .. } | Self::Config(_) => self,
            other => other.with(125),
        }
    }

    pub(crate) fn remedy(&self) -> &str {
        match self {
            Self::Config(_) => "mend it and run `hermetic config check`",
            Self::Backend(doubt) => doubt.remedy(),
            Self::Other { remedy, .. } => remedy,
            Self::Exec { failure, .. } => failure.remedy(),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Backend(_) => Exit::BadConfig,
            Self::Other { .. } => Exit::Failed,
            Self::Exec { code, .. } => Exit::Passed(*code),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Config(problems)
    }
}

impl From<BackendDoubt> for Failure {
    fn from(doubt: BackendDoubt) -> Self {
        Self::Backend(doubt)
    }
}

impl From<NoHome> for Failure {
    fn from(no_home: NoHome) -> Self {
        Self::new(no_home.to_string(), "set HERMES_HOME, or pass --home")
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let remedy = match &error {
            BackendError::Unavailable { remedy, .. } => remedy.clone(),
            BackendError::NoSuchSandbox { .. } => "see `hermetic sandbox list`".to_owned(),
            BackendError::Refused { .. } => "change what was asked for".to_owned(),
            BackendError::Failed { .. } => {
                "`hermetic doctor` tells what this host lacks".to_owned()
            }
        };
        Self::caused(&error, remedy)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::caused(
            &error,
            "check the state folder's permissions and the space left",
        )
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::caused(&error, "try again; destroy the sandbox if it persists")
    }
}
