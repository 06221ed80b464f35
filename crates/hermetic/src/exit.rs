//! What the process says when it ends. `docs/exit-codes.md` tells the same.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    Failed,
    /// As sysexits.h has it.
    BadConfig,
    /// The code of a command that was run.
    Passed(u8),
}

pub(crate) const HELP: &str = "\
Exit codes:
  0    success
  1    failed; the message says why
  2    the arguments are wrong
  78   the configuration has errors
  125  exec: hermetic itself failed      126  exec: the command cannot be run
  127  exec: no such command             otherwise exec passes the command's own code on";

impl Exit {
    pub(crate) const BAD_CONFIG: u8 = 78;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::SUCCESS,
            Exit::Failed => Self::FAILURE,
            Exit::BadConfig => Self::from(Exit::BAD_CONFIG),
            Exit::Passed(code) => Self::from(code),
        }
    }
}
