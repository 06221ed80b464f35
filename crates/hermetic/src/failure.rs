//! Why a command did not do what was asked, and the code it ends with.

use std::error::Error;
use std::fmt;
use std::path::Path;

use crate::exit::ExitReason;

/// What happened and what to do, as the parts tell it; the exit code is this program's own.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    why: hermetic_app::AppFailure,
    /// `hermetic exec` leaves room for the command's own codes.
    code: Option<u8>,
}

impl CommandFailure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        hermetic_app::AppFailure::new(what, remedy).into()
    }

    /// Something about a file that the system refused.
    pub(crate) fn file(verb: &str, path: &Path, error: &std::io::Error) -> Self {
        hermetic_app::AppFailure::file(verb, path, error).into()
    }

    /// An error with its causes, in one line.
    pub(crate) fn caused(error: &dyn Error, remedy: impl Into<String>) -> Self {
        hermetic_app::AppFailure::caused(error, remedy).into()
    }

    /// The same, ending with a code of its own.
    pub(crate) fn with(self, code: u8) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    /// A failure of our own under `exec`.
    pub(crate) fn of_exec(self) -> Self {
        match (&self.why, self.code) {
            (hermetic_app::AppFailure::Config(_), _) | (_, Some(_)) => self,
            (_, None) => self.with(125),
        }
    }

    pub(crate) fn why(&self) -> &hermetic_app::AppFailure {
        &self.why
    }

    pub(crate) fn exit(&self) -> ExitReason {
        match (self.code, &self.why) {
            (Some(code), _) => ExitReason::Passed(code),
            (None, hermetic_app::AppFailure::Config(_) | hermetic_app::AppFailure::Backend(_)) => {
                ExitReason::BadConfig
            }
            (None, hermetic_app::AppFailure::Other { .. }) => ExitReason::Failed,
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<E> From<E> for CommandFailure
where
    hermetic_app::AppFailure: From<E>,
{
    fn from(error: E) -> Self {
        Self {
            why: error.into(),
            code: None,
        }
    }
}
