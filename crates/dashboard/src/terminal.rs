//! A shell in a living sandbox, for an operator with a browser.
//!
//! One request opens a shell and its answer is the output, for as long as the shell lives: whoever goes away takes
//! the shell along, and nothing is left that somebody else could pick up. What is typed comes in requests of its
//! own, each of which is an [`Act`](crate::acts::Act): a session that ended types nothing any more. Only people get
//! in here; a token is a program's, and what runs in a terminal was typed.

mod bounds;
mod frame;
mod handlers;
mod session;

use std::fmt;

use futures::future::BoxFuture;
use hermetic_session::SandboxLease;
use hermetic_types::{BackendKind, ConversationKey, SandboxId};
use hermetic_warden::client::RunningCommand;
use thiserror::Error;

pub(crate) use bounds::TerminalSeats;
pub(crate) use handlers::routes;

/// Opens shells in sandboxes that live.
///
/// What an implementer promises: the shell runs in this very sandbox, which is a boundary; none is made or brought
/// back for it; the future ends within seconds.
pub trait TerminalOpener: Send + Sync + fmt::Debug {
    /// Whether sandboxes of this backend are a boundary, so that a shell is opened in them.
    fn opens_on(&self, backend: BackendKind) -> bool;

    fn open<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        sandbox: &'a SandboxId,
        size: TerminalSize,
    ) -> BoxFuture<'a, Result<OpenedShell, TerminalRefused>>;
}

/// A shell on a terminal of its own.
#[derive(Debug)]
pub struct OpenedShell {
    pub shell: RunningCommand,
    /// Keeps the sandbox from being let go as idle.
    pub lease: SandboxLease,
}

/// Columns and rows, within what a program inside can bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    columns: u16,
    rows: u16,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TerminalRefused {
    #[error(
        "This sandbox does not live any more: its conversation brings it back, or makes another."
    )]
    NotLiving,
    #[error(
        "This conversation runs on a machine that is no sandbox, and a browser gets no shell there. On the \
         gateway's machine, `hermetic sandbox exec` does, and asks about what is dangerous."
    )]
    NoBoundary,
    #[error("The sandbox does not start a shell. The log says why.")]
    NotStarted,
}

/// More than any screen shows, and less than what makes a program inside reserve memory for it.
const MOST_COLUMNS: u16 = 500;
const MOST_ROWS: u16 = 200;
const FEWEST: u16 = 2;

impl TerminalSize {
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            columns: columns.clamp(FEWEST, MOST_COLUMNS),
            rows: rows.clamp(FEWEST, MOST_ROWS),
        }
    }

    pub fn columns(self) -> u16 {
        self.columns
    }

    pub fn rows(self) -> u16 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_kept_within_bounds() {
        for (asked, kept) in [
            ((80, 24), (80, 24)),
            ((0, 0), (2, 2)),
            ((u16::MAX, u16::MAX), (500, 200)),
        ] {
            let size = TerminalSize::new(asked.0, asked.1);
            assert_eq!((size.columns(), size.rows()), kept);
        }
    }
}
