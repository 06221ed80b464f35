//! Why a command did not do what was asked: one line of what happened, one of what to do.

use std::path::Path;

use hermetic_config::{BackendDoubt, NoHome, Problems};
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

    pub(crate) fn remedy(&self) -> &str {
        match self {
            Self::Config(_) => "mend it and run `hermetic config check`",
            Self::Backend(doubt) => doubt.remedy(),
            Self::Other { remedy, .. } => remedy,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Backend(_) => Exit::BadConfig,
            Self::Other { .. } => Exit::Failed,
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
