//! Our own terminal, while it belongs to a command.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::failure::CommandFailure;

/// Keys go through untouched until it is dropped.
#[derive(Debug)]
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    pub(super) fn enter() -> Result<Self, CommandFailure> {
        let failed = |error: rustix::io::Errno| {
            CommandFailure::caused(&io::Error::from(error), "leave --tty out")
        };
        let before = tcgetattr(rustix::stdio::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Columns and rows, or what a terminal once had.
pub(in crate::commands) fn size() -> (u16, u16) {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}
