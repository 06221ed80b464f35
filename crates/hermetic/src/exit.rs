//! What the process says when it ends. `docs/exit-codes.md` tells the same.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
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

impl ExitReason {
    pub(crate) const BAD_CONFIG: u8 = 78;
}

impl From<ExitReason> for ExitCode {
    fn from(exit: ExitReason) -> Self {
        match exit {
            ExitReason::Ok => Self::SUCCESS,
            ExitReason::Failed => Self::FAILURE,
            ExitReason::BadConfig => Self::from(ExitReason::BAD_CONFIG),
            ExitReason::Passed(code) => Self::from(code),
        }
    }
}
