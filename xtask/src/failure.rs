//! How a chore ends badly.

use std::process::{ExitCode, ExitStatus};
use std::{fmt, io};

#[derive(Debug)]
pub(crate) enum ChoreFailure {
    /// The command line is wrong.
    Usage(String),
    /// A program is not there or cannot be started.
    Start {
        line: String,
        source: io::Error,
    },
    /// A program ran and said no.
    Ended {
        line: String,
        status: ExitStatus,
    },
    File {
        what: String,
        source: io::Error,
    },
    /// The machine lacks something a chore cannot do without.
    Lacking {
        what: String,
        remedy: String,
    },
    /// All steps ran; these came out bad.
    Bad(Vec<String>),
}

impl ChoreFailure {
    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::File { what, source }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(64),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for ChoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what} (`cargo xtask help` lists what there is)"),
            Self::Start { line, source } => write!(f, "cannot start `{line}`: {source}"),
            Self::Ended { line, status } => write!(f, "`{line}` ended with {status}"),
            Self::File { what, source } => write!(f, "cannot {what}: {source}"),
            Self::Lacking { what, remedy } => write!(f, "{what} ({remedy})"),
            Self::Bad(list) => f.write_str(&list.join("; ")),
        }
    }
}
