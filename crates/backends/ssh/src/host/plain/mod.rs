//! A host on which no program of ours runs: another architecture, a home that is mounted `noexec`.
//!
//! The gateway plays the warden itself and runs each command by a shell line on a channel of its own.
//! What can be kept still is: one folder for each sandbox, a clean end of everything a command
//! started (found by a variable it carries), timeouts, listing by our own names. What cannot be is
//! refused: a shell that lasts, a terminal, files by descriptor, picking up after a broken link.

mod commands;
mod last_word;
mod line;
mod lodge;

pub(super) use lodge::PlainHost;
