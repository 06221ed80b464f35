//! Why a command did not do what was asked, and the code it ends with.

use std::error::Error;
use std::fmt;
use std::path::Path;

use crate::exit::Exit;

/// What happened and what to do, as the parts tell it; the exit code is this program's own.
#[derive(Debug)]
pub(crate) struct Failure {
    why: hermetic_app::Failure,
    /// `hermetic exec` leaves room for the command's own codes.
    code: Option<u8>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        hermetic_app::Failure::new(what, remedy).into()
    }

    /// Something about a file that the system refused.
    pub(crate) fn file(verb: &str, path: &Path, error: &std::io::Error) -> Self {
        hermetic_app::Failure::file(verb, path, error).into()
    }

    /// An error with its causes, in one line.
    pub(crate) fn caused(error: &dyn Error, remedy: impl Into<String>) -> Self {
        hermetic_app::Failure::caused(error, remedy).into()
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
            (hermetic_app::Failure::Config(_), _) | (_, Some(_)) => self,
            (_, None) => self.with(125),
        }
    }

    pub(crate) fn why(&self) -> &hermetic_app::Failure {
        &self.why
    }

    pub(crate) fn exit(&self) -> Exit {
        match (self.code, &self.why) {
            (Some(code), _) => Exit::Passed(code),
            (None, hermetic_app::Failure::Config(_) | hermetic_app::Failure::Backend(_)) => {
                Exit::BadConfig
            }
            (None, hermetic_app::Failure::Other { .. }) => Exit::Failed,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<E> From<E> for Failure
where
    hermetic_app::Failure: From<E>,
{
    fn from(error: E) -> Self {
        Self {
            why: error.into(),
            code: None,
        }
    }
}
